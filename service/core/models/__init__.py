"""What the pydantic models share that users write: unions by kind, modules found, values kept, complaints with places."""
