//! Manypath: packet schedulers, one object per connection.
