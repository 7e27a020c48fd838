"""Scripts that replay, on torch.distributed, the steps that the notes describe."""
