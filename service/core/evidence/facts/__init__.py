"""What results hold: values under fields of records, in their units, and the entities they make up."""
