"""What a policy means, said of the policy alone."""
