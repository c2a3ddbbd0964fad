#!/usr/bin/env python3
"""make_stories.py STORIES260K.BIN TOK512.BIN - writes tests/data/stories260k.gguf (float32) and
tests/golden/stories260k.json (200 greedy tokens after the beginning of text, and their text).

stories260K is a trained model of 260 thousand parameters by Andrej Karpathy (llama2.c, MIT licence; files
stories260K.bin and tok512.bin of huggingface.co/karpathy/tinyllamas). Layout of the two files: export.py
and run.c of llama2.c. The tokens are those of the forward pass below, in float64 NumPy, written from the
model's definition alone; the least gap between the two greatest logits is printed, so that one sees that
float32 cannot change them. The text is the one that llama2.c's test_all.py and its doc/stories260K.md
publish for temperature 0.
"""
import json
import pathlib
import struct
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ALIGN = 32


def read_model(path):
    data = pathlib.Path(path).read_bytes()
    dim, ffn, layers, heads, kv_heads, vocab, seq = struct.unpack("7i", data[:28])
    shared, vocab = vocab > 0, abs(vocab)
    head = dim // heads
    at = 28
    w = {}
    for name, shape in (("token_embd", (vocab, dim)), ("attn_norm", (layers, dim)),
                        ("attn_q", (layers, heads * head, dim)), ("attn_k", (layers, kv_heads * head, dim)),
                        ("attn_v", (layers, kv_heads * head, dim)), ("attn_output", (layers, dim, heads * head)),
                        ("ffn_norm", (layers, dim)), ("ffn_gate", (layers, ffn, dim)),
                        ("ffn_down", (layers, dim, ffn)), ("ffn_up", (layers, ffn, dim)),
                        ("output_norm", (dim,))):
        n = int(np.prod(shape))
        w[name] = np.frombuffer(data, "<f4", n, at).reshape(shape)
        at += 4 * n
    at += 4 * seq * head  # two tables of angles, not used any more
    if not shared:
        w["output"] = np.frombuffer(data, "<f4", vocab * dim, at).reshape(vocab, dim)
        at += 4 * vocab * dim
    assert at == len(data), (at, len(data))
    return dict(dim=dim, ffn=ffn, layers=layers, heads=heads, kv_heads=kv_heads, vocab=vocab, seq=seq,
                head=head), w


def read_tokens(path, vocab):
    data = pathlib.Path(path).read_bytes()
    at, out = 4, []
    for _ in range(vocab):
        score, n = struct.unpack_from("<fi", data, at)
        out.append((data[at + 8:at + 8 + n].decode(), score))
        at += 8 + n
    return out


def norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def rotate(x, pos, c):
    """x [heads, head]: neighbours are a pair."""
    angle = pos * 10000.0 ** (-np.arange(0, c["head"], 2) / c["head"])
    a, b = x[:, 0::2], x[:, 1::2]
    y = np.empty_like(x)
    y[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    y[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return y


def step(token, pos, c, w, keys, values):
    x = w["token_embd"][token]
    for i in range(c["layers"]):
        h = norm(x, w["attn_norm"][i])
        q = rotate((w["attn_q"][i] @ h).reshape(c["heads"], -1), pos, c)
        keys[i].append(rotate((w["attn_k"][i] @ h).reshape(c["kv_heads"], -1), pos, c))
        values[i].append((w["attn_v"][i] @ h).reshape(c["kv_heads"], -1))
        out = []
        for j in range(c["heads"]):
            g = j // (c["heads"] // c["kv_heads"])
            s = np.array([k[g] @ q[j] for k in keys[i]]) / np.sqrt(c["head"])
            p = np.exp(s - s.max())
            out.append(sum(a * v[g] for a, v in zip(p / p.sum(), values[i])))
        x = x + w["attn_output"][i] @ np.concatenate(out)
        h = norm(x, w["ffn_norm"][i])
        gate = w["ffn_gate"][i] @ h
        x = x + w["ffn_down"][i] @ (gate / (1 + np.exp(-gate)) * (w["ffn_up"][i] @ h))
    return w.get("output", w["token_embd"]) @ norm(x, w["output_norm"])


def text(s):
    s = s.encode()
    return struct.pack("<Q", len(s)) + s


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def array(kind, items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def write_gguf(path, c, w, tokens):
    u32 = lambda n: struct.pack("<I", n)
    pieces, kinds = [], []
    for i, (piece, _) in enumerate(tokens):
        named = ["<unk>", "<s>", "</s>"][i] if i < 3 else piece.replace(" ", "\u2581")
        pieces.append(text(named))
        kinds.append(u32(2 if i == 0 else 3 if i < 3 else 6 if i < 259 else 1))
    meta = [key("general.architecture", 8, text("llama")), key("general.name", 8, text("stories260k")),
            key("general.license", 8, text("mit")), key("general.author", 8, text("Andrej Karpathy")),
            key("general.file_type", 4, u32(0)), key("llama.context_length", 4, u32(c["seq"])),
            key("llama.embedding_length", 4, u32(c["dim"])), key("llama.block_count", 4, u32(c["layers"])),
            key("llama.feed_forward_length", 4, u32(c["ffn"])),
            key("llama.attention.head_count", 4, u32(c["heads"])),
            key("llama.attention.head_count_kv", 4, u32(c["kv_heads"])),
            key("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
            key("llama.rope.dimension_count", 4, u32(c["head"])),
            key("llama.rope.freq_base", 6, struct.pack("<f", 10000.0)),
            key("llama.vocab_size", 4, u32(c["vocab"])),
            key("tokenizer.ggml.model", 8, text("llama")),
            key("tokenizer.ggml.tokens", 9, array(8, pieces)),
            key("tokenizer.ggml.scores", 9, array(6, [struct.pack("<f", s) for _, s in tokens])),
            key("tokenizer.ggml.token_type", 9, array(5, kinds)),
            key("tokenizer.ggml.bos_token_id", 4, u32(1)), key("tokenizer.ggml.eos_token_id", 4, u32(2)),
            key("tokenizer.ggml.add_bos_token", 7, b"\1"), key("tokenizer.ggml.add_space_prefix", 7, b"\1")]
    tensors = [("token_embd.weight", w["token_embd"]), ("output_norm.weight", w["output_norm"])]
    if "output" in w:
        tensors.append(("output.weight", w["output"]))
    for i in range(c["layers"]):
        tensors += [(f"blk.{i}.{n}.weight", w[n][i]) for n in
                    ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate",
                     "ffn_up", "ffn_down")]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)) + b"".join(meta)
    at, body = 0, []
    for name, t in tensors:
        head += text(name) + u32(t.ndim) + b"".join(struct.pack("<Q", n) for n in reversed(t.shape))
        head += u32(0) + struct.pack("<Q", at)
        raw = t.astype("<f4").tobytes()
        body.append(raw + bytes(-len(raw) % ALIGN))
        at += len(body[-1])
    path.write_bytes(head + bytes(-len(head) % ALIGN) + b"".join(body))


def main():
    c, w = read_model(sys.argv[1])
    tokens = read_tokens(sys.argv[2], c["vocab"])
    write_gguf(HERE.parent / "data" / "stories260k.gguf", c, w, tokens)
    wide = {n: t.astype(np.float64) for n, t in w.items()}
    keys, values = [[] for _ in range(c["layers"])], [[] for _ in range(c["layers"])]
    token, out, gap = 1, [], np.inf
    for pos in range(200):
        logits = step(token, pos, c, wide, keys, values)
        top = np.sort(logits)[-2:]
        gap = min(gap, top[1] - top[0])
        token = int(logits.argmax())
        out.append(token)
    raw = b"".join(bytes([int(p[3:5], 16)]) if 3 <= i < 259 else p.encode()
                   for i, p in ((t, tokens[t][0]) for t in out))
    story = raw.decode().lstrip(" ")
    (HERE / "stories260k.json").write_text(json.dumps({"tokens": out, "text": story}, indent=1) + "\n")
    print(story)
    print("least gap of the two greatest logits:", gap)


main()
