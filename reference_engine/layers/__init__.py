"""Where a candidate's loss comes from: divergence by layer and by module."""
