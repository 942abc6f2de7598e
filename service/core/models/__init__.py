"""What our models share: unions by kind, discovery of modules, lazy values, light dataclasses, errors with pointers."""
