"""What type checkers say of code that uses the library."""
