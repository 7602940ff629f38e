"""What each page of a site says, as plain values for its template."""
