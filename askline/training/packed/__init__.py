"""Many sequences end to end, without padding: what the transformers and the cascade train on."""
