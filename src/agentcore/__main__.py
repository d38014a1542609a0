"""`python -m agentcore`: the command line."""

from agentcore.cli import main

if __name__ == "__main__":
    main()
