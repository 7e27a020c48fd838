"""The real Megatron-LM of the pin, trained on CPUs: `python -m runnable.megatron_cpu --tp 2 --pp 2 --dp 2`."""
