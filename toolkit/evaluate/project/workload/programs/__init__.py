"""What an evaluation measures in processes of the builds; imports little."""
