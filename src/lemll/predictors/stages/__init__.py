"""What the learners in two stages share: enhanced labels first, then a regression on them."""
