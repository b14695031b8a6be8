"""What the clients of each era may send, and what they get: two objects instead of a flag."""
