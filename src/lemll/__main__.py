"""``python -m lemll``: the command line, also where its script is not on the path."""

from lemll.cli import main

if __name__ == "__main__":
    main()
