"""Pictures and self-contained pages, as text or bytes. Drawing needs the extra `report`."""
