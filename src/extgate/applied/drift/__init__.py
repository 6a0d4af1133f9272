"""Whether what `extgate apply` wrote still stands, and still says what the profile says: one file a finding."""
