"""Published claims about TurboQuant and low-bit KV caches, each as an experiment with a verdict."""
