"""The bridge between Slipway and SkyPilot's sandbox SDK."""
