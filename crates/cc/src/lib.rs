//! Manypath: congestion controllers, one object per connection.
