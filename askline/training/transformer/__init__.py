"""Cross-encoders: any Hugging Face encoder over (question, candidate), cut to any depth."""
