#!/usr/bin/env python3
"""make_models.py [FAMILY...] - writes FAMILY.json beside itself: a tiny model of each family and the
float32 logits that transformers computes for two prompts.

No weights are kept. Number i of the tensor that a model's files call NAME is

    u = (splitmix64(fnv1a64(NAME) + i * 0x9e3779b97f4a7c15) >> 40) * 2^-23 - 1      in [-1, 1)
    1 + u / 4   where NAME holds "norm" and ends in "weight"
    u / 4       elsewhere

with splitmix64's finaliser alone (tests/test_golden.c has the same in C). Every number is exact in
float32. The files list the tensors with their shapes, as save_pretrained wrote them, so a test can lay out
a safetensors file of the same bytes.

Made with torch 2.15.0 (CPU) and transformers 5.24.0: pip install torch transformers safetensors numpy.
"""
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
PROMPTS = [[3, 41, 7, 19, 30, 2, 44, 11, 7, 25, 38, 5], [17, 9, 33, 9, 1, 46, 22]]
BASE = dict(vocab_size=48, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=2, head_dim=12, max_position_embeddings=256,
            bos_token_id=0, eos_token_id=1, pad_token_id=0, dtype="float32")


def base(**more):
    return {**BASE, **more}


def flat(**more):
    """Without head_dim, where the family has no such setting."""
    return {k: v for k, v in base(**more).items() if k != "head_dim"}


LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
            mscale_all_dim=1.0, original_max_position_embeddings=64)
FAMILIES = {
    "llama": ("llama", base(rope_parameters=LLAMA3, tie_word_embeddings=False)),
    "qwen2": ("qwen2", {k: v for k, v in base(tie_word_embeddings=True).items() if k != "head_dim"}),
    "qwen3": ("qwen3", base(tie_word_embeddings=True)),
    "phi3": ("phi3", {k: v for k, v in base(sliding_window=5, tie_word_embeddings=False).items()
                      if k != "head_dim"}),
    "gpt2": ("gpt2", dict(vocab_size=48, n_embd=32, n_layer=3, n_head=4, n_positions=64, bos_token_id=0,
                          eos_token_id=1, dtype="float32")),
    "gemma2": ("gemma2", base(sliding_window=5, query_pre_attn_scalar=20, attn_logit_softcapping=5.0,
                              final_logit_softcapping=10.0, hidden_activation="gelu_pytorch_tanh",
                              num_hidden_layers=4)),
    "gemma3": ("gemma3_text", base(sliding_window=5, query_pre_attn_scalar=20, num_hidden_layers=4,
                                   layer_types=["sliding_attention", "sliding_attention",
                                                "full_attention", "sliding_attention"],
                                   hidden_activation="gelu_pytorch_tanh")),
    "mixtral": ("mixtral", base(num_local_experts=6, num_experts_per_tok=2, sliding_window=None,
                                tie_word_embeddings=False)),
    "qwen3_moe": ("qwen3_moe", base(num_experts=6, num_experts_per_tok=3, moe_intermediate_size=20,
                                    norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
                                    tie_word_embeddings=False)),
    "deepseek_v3": ("deepseek_v3",
                    {k: v for k, v in base(num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=16,
                                           qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10,
                                           n_routed_experts=8, num_experts_per_tok=3, n_group=4,
                                           topk_group=2, n_shared_experts=1, moe_intermediate_size=20,
                                           first_k_dense_replace=1, norm_topk_prob=True,
                                           routed_scaling_factor=2.5, rope_parameters=YARN,
                                           rope_interleave=True,
                                           tie_word_embeddings=False).items() if k != "head_dim"}),
    "gpt_oss": ("gpt_oss", base(num_local_experts=4, num_experts_per_tok=2, sliding_window=5,
                                num_hidden_layers=2, head_dim=16,
                                layer_types=["sliding_attention", "full_attention"],
                                rope_parameters={k: v for k, v in YARN.items() if "mscale" not in k} |
                                {"truncate": False}, tie_word_embeddings=False)),
    "qwen3_next": ("qwen3_next", base(num_hidden_layers=4, head_dim=16, linear_num_key_heads=2,
                                      linear_num_value_heads=4, linear_key_head_dim=8,
                                      linear_value_head_dim=6, linear_conv_kernel_dim=4,
                                      num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20,
                                      shared_expert_intermediate_size=24, decoder_sparse_step=1,
                                      norm_topk_prob=True, mlp_only_layers=[],
                                      rope_parameters=dict(rope_type="default", rope_theta=10000.0,
                                                           partial_rotary_factor=0.25),
                                      tie_word_embeddings=False)),
    "qwen3_5": ("qwen3_5_text", base(num_hidden_layers=4, head_dim=16, linear_num_key_heads=2,
                linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=6,
                linear_conv_kernel_dim=4, rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                "partial_rotary_factor": 0.25, "mrope_section": [1, 1, 0]}, tie_word_embeddings=False)),
    "qwen3_5_moe": ("qwen3_5_moe_text", base(num_hidden_layers=4, head_dim=16,
                linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=6,
                linear_conv_kernel_dim=4, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20,
                shared_expert_intermediate_size=24, rope_parameters={"rope_type": "default", "rope_theta":
                10000.0, "partial_rotary_factor": 0.25, "mrope_section": [1, 1, 0]}, tie_word_embeddings=False)),
    "qwen2_moe": ("qwen2_moe", flat(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20,
                shared_expert_intermediate_size=24, decoder_sparse_step=1)),
    "mistral": ("mistral", base(sliding_window=5)),
    "deepseek_v2": ("deepseek_v2", flat(num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=16,
                qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10, n_routed_experts=8,
                num_experts_per_tok=3, n_group=4, topk_group=2, topk_method="group_limited_greedy",
                n_shared_experts=2, moe_intermediate_size=20, first_k_dense_replace=1,
                routed_scaling_factor=2.0)),
    "glm4_moe": ("glm4_moe", base(n_routed_experts=6, num_experts_per_tok=2,
                moe_intermediate_size=20, n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1,
                use_qk_norm=True)),
    "minimax_m2": ("minimax_m2", base(num_local_experts=6, num_experts_per_tok=2, rotary_dim=6)),
    "olmo2": ("olmo2", flat()),
    "olmo3": ("olmo3", flat(sliding_window=5)),
    "olmoe": ("olmoe", flat(num_experts=6, num_experts_per_tok=2)),
    "exaone4": ("exaone4", flat(sliding_window=5, sliding_window_pattern=3,
                layer_types=["sliding_attention", "sliding_attention", "full_attention"])),
    "granite": ("granite", flat(embedding_multiplier=2.0, residual_multiplier=0.5,
                attention_multiplier=0.2, logits_scaling=3.0)),
    "granitemoe": ("granitemoe", flat(embedding_multiplier=2.0, residual_multiplier=0.5,
                attention_multiplier=0.2, logits_scaling=3.0, num_local_experts=4, num_experts_per_tok=2)),
    "cohere2": ("cohere2", flat(logit_scale=0.25, sliding_window=5)),
    "smollm3": ("smollm3", flat(no_rope_layers=[1, 1, 0])),
    "ernie4_5_moe": ("ernie4_5_moe", flat(moe_num_experts=6, moe_k=2, moe_intermediate_size=20,
                moe_num_shared_experts=1, moe_layer_start_index=1)),
    "hunyuan": ("hunyuan_v1_dense", base()),
    "starcoder2": ("starcoder2", flat(sliding_window=None)),
    "stablelm": ("stablelm", flat(use_parallel_residual=False, partial_rotary_factor=0.5)),
    "phi": ("phi", flat(partial_rotary_factor=0.5)),
    "lfm2": ("lfm2", flat(layer_types=["conv", "full_attention", "conv"], conv_L_cache=3,
                block_auto_adjust_ff_dim=False)),
}


def numbers(name, count):
    mask = (1 << 64) - 1
    h = 14695981039346656037
    for byte in name.encode():
        h = ((h ^ byte) * 1099511628211) & mask
    with np.errstate(over="ignore"):
        z = np.uint64(h) + np.arange(count, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z = z ^ (z >> np.uint64(31))
    u = (z >> np.uint64(40)).astype(np.float64) * 2.0 ** -23 - 1.0
    return (1.0 + u / 4 if "norm" in name and name.endswith("weight") else u / 4).astype(np.float32)


def make(family):
    kind, settings = FAMILIES[family]
    settings = dict(settings)
    settings.pop("dtype")
    config = AutoConfig.for_model(kind, **settings)
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float()
        model.save_pretrained(folder)
        path = folder / "model.safetensors"
        tensors = load_file(path)
        filled = {n: numbers(n, t.size).reshape(t.shape) for n, t in tensors.items()}
        save_file(filled, path, metadata={"format": "pt"})
        model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager",
                                                     dtype=torch.float32).eval()
        logits = []
        for prompt in PROMPTS:
            with torch.no_grad():
                logits.append(model(torch.tensor([prompt]), use_cache=False).logits[0].float().numpy())
        config = json.loads((folder / "config.json").read_text())
    finally:
        shutil.rmtree(folder)
    for key in ("transformers_version", "_name_or_path"):
        config.pop(key, None)
    config["dtype"] = "float32"
    lines = ["{", ' "config": ' + json.dumps(config, sort_keys=True) + ",", ' "tensors": {']
    shapes = [f"  {json.dumps(n)}: {json.dumps(list(t.shape))}" for n, t in sorted(tensors.items())]
    lines += [",\n".join(shapes), " },", ' "prompts": ' + json.dumps(PROMPTS) + ",", ' "logits": [']
    for i, a in enumerate(logits):
        rows = ["   [" + ", ".join(f"{x:.9g}" for x in row) + "]" for row in a]
        lines += ["  [", ",\n".join(rows), "  ]" + ("," if i + 1 < len(logits) else "")]
    lines += [" ]", "}", ""]
    (HERE / f"{family}.json").write_text("\n".join(lines))
    print(family, len(tensors), "tensors, logits", float(np.abs(logits[0]).max()))


for name in sys.argv[1:] or FAMILIES:
    make(name)
