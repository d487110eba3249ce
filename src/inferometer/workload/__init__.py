"""What each request says: lengths, prompts and the tokenizer that counts them, ready before the clock starts."""
