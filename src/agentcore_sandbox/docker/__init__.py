"""Docker containers as boxes. Importing it loads neither aiodocker nor aiohttp."""
