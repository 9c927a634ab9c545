"""KL divergence, top-1 agreement and perplexity against f16."""
