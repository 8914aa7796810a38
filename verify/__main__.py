"""`python -m verify`."""

from verify.commands import main

if __name__ == "__main__":
    main()
