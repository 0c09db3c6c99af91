"""What the documentation is made of at build time: runs with their pictures, and pages written from them."""
