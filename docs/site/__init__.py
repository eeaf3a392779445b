"""The documentation site: pages that are generated, and pages that are copied."""
