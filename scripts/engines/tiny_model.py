"""The tiny random model all engines serve: a Llama of two layers, as safetensors and as GGUF.

Speed does not care what the weights are, so nothing is downloaded: the tokenizer is trained on Python's own
standard library, and the weights are drawn from a fixed seed. Both files hold the same numbers, so that
greedy decoding can be compared between engines.

Shapes: vocabulary V = 4,096, width D = 128, H = 4 heads of 32, K = 2 key and value heads, feed-forward F =
256, context 8,192. The output rows of the special tokens are zero: their logit is 0 while the largest of the
others is about 3.5 standard deviations above it, so greedy decoding never ends a reply early.

Runs inside the tools environment: `.engines/tools/bin/python scripts/engines/tiny_model.py OUTPUT_DIR
OUTPUT_GGUF`. The libraries are loaded by name, since the project's own environment lacks some of them.
"""

from __future__ import annotations

import importlib
import json
import sys
import sysconfig
from pathlib import Path
from typing import Any

np: Any = importlib.import_module("numpy")
tokenizers: Any = importlib.import_module("tokenizers")
safetensors: Any = importlib.import_module("safetensors.numpy")
gguf: Any = importlib.import_module("gguf")

SEED = 20260101
VOCABULARY = 4096
WIDTH = 128
LAYERS = 2
HEADS = 4
KV_HEADS = 2
HEAD_DIM = WIDTH // HEADS
FEED_FORWARD = 256
CONTEXT = 8192
ROPE_THETA = 10000.0
NORM_EPSILON = 1e-5
CORPUS_BYTES = 4_000_000

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
BOS = EOS = 2  # <|im_end|>, the id that ends a turn; no engine is told to put one first
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def corpus() -> list[str]:
    """Text any Python carries: the language reference of `help()`, then the standard library's sources."""
    library = Path(sysconfig.get_paths()["stdlib"])
    texts: list[str] = []
    room = CORPUS_BYTES
    for path in [library / "pydoc_data" / "topics.py", *sorted(library.glob("*.py"))]:
        text = path.read_text(encoding="utf-8", errors="replace")
        texts.append(text)
        room -= len(text)
        if room < 0:
            break
    return texts


def make_tokenizer(directory: Path) -> dict[str, Any]:
    """Train the byte-level BPE, write both tokenizer files, and return the contents of `tokenizer.json`."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": SPECIAL[EOS],
        "pad_token": SPECIAL[0],
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONTEXT,
        "chat_template": CHAT_TEMPLATE,
    }
    write_json(directory / "tokenizer_config.json", settings)
    content: dict[str, Any] = json.loads((directory / "tokenizer.json").read_text())
    return content


def config() -> dict[str, Any]:
    """The `config.json` of the model."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "intermediate_size": FEED_FORWARD,
        "max_position_embeddings": CONTEXT,
        "rope_theta": ROPE_THETA,
        "rms_norm_eps": NORM_EPSILON,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": None,
        "eos_token_id": EOS,
        "pad_token_id": 0,
        "torch_dtype": "float32",
    }


def make_weights() -> dict[str, Any]:
    """Arrays by their safetensors names, float32, every matrix with standard deviation 1 / sqrt(inputs)."""
    random = np.random.default_rng(SEED)

    def matrix(rows: int, columns: int) -> Any:
        return (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

    kv_width = KV_HEADS * HEAD_DIM
    weights = {
        "model.embed_tokens.weight": random.standard_normal((VOCABULARY, WIDTH)).astype(np.float32),
        "model.norm.weight": np.ones(WIDTH, np.float32),
        "lm_head.weight": 2 * matrix(VOCABULARY, WIDTH),
    }
    weights["lm_head.weight"][: len(SPECIAL)] = 0
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        weights[prefix + "input_layernorm.weight"] = np.ones(WIDTH, np.float32)
        weights[prefix + "post_attention_layernorm.weight"] = np.ones(WIDTH, np.float32)
        weights[prefix + "self_attn.q_proj.weight"] = matrix(WIDTH, WIDTH)
        weights[prefix + "self_attn.k_proj.weight"] = matrix(kv_width, WIDTH)
        weights[prefix + "self_attn.v_proj.weight"] = matrix(kv_width, WIDTH)
        weights[prefix + "self_attn.o_proj.weight"] = matrix(WIDTH, WIDTH)
        weights[prefix + "mlp.gate_proj.weight"] = matrix(FEED_FORWARD, WIDTH)
        weights[prefix + "mlp.up_proj.weight"] = matrix(FEED_FORWARD, WIDTH)
        weights[prefix + "mlp.down_proj.weight"] = matrix(WIDTH, FEED_FORWARD)
    return weights


def interleaved(matrix: Any, heads: int) -> Any:
    """Rows of a query or key matrix in GGUF's order: safetensors rotates halves of a head, GGUF pairs."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(path: Path, weights: dict[str, Any], tokenizer: dict[str, Any]) -> None:
    """Write the same model as GGUF; `gpt-2` is llama.cpp's name for the tokenizer's splitting rule."""
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(ROPE_THETA)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    add_tokenizer(writer, tokenizer)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, LAYERS)
    for name, array in weights.items():
        stored = array
        if "q_proj" in name or "k_proj" in name:
            stored = interleaved(array, HEADS if "q_proj" in name else KV_HEADS)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer: Any, tokenizer: dict[str, Any]) -> None:
    """Add vocabulary, merges, special ids and the chat template to the GGUF."""
    by_id = sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: entry[1])
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([text for text, _ in by_id])
    writer.add_token_types([control if text in SPECIAL else normal for text, _ in by_id])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write indented JSON with a newline at the end."""
    path.write_text(json.dumps(content, indent=2) + "\n")


def main(directory: Path, gguf_path: Path) -> None:
    """Make everything."""
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(directory)
    write_json(directory / "config.json", config())
    ids = {"eos_token_id": EOS, "pad_token_id": 0}
    write_json(directory / "generation_config.json", ids)
    weights = make_weights()
    safetensors.save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    write_gguf(gguf_path, weights, tokenizer)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
