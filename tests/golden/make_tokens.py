#!/usr/bin/env python3
"""Makes the small tokenizers and the ids that tests/test_tokenizer.c expects of them.

    make_tokens.py                     tests/golden/tokens/: NAME.json, a tokenizer trained on corpus.py
                                       in the manner of a known family, and NAME.ids, a line of ids for
                                       each line of texts.hex
    make_tokens.py --check MODEL.gguf --plimsoll BIN
                                       asks llama.cpp (xllamacpp's server) and `plimsoll tokenize` for
                                       every text of corpus.py and counts where they differ

Needs Python 3.9, and `pip install tokenizers` (made with 0.23.3); for --check `pip install xllamacpp`.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.request

import corpus

OUT = pathlib.Path(__file__).parent / "tokens"
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+").replace('\\"', '"')


def texts():
    return corpus.TEXTS + corpus.random_texts(60, seed=11)


def families():
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    def byte_level(pre, norm=None, size=420, **model):
        t = Tokenizer(models.BPE(**model))
        t.pre_tokenizer = pre
        if norm is not None:
            t.normalizer = norm
        t.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        return t, trainer

    def fallback(pre, norm, size=420):
        t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        t.normalizer = norm
        if pre is not None:
            t.pre_tokenizer = pre
        t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=60,
                                      special_tokens=["<unk>"] + SPECIAL + ["<0x%02X>" % b for b in range(256)])
        return t, trainer

    split = lambda p: pre_tokenizers.Split(Regex(p), "isolated")
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    seq = pre_tokenizers.Sequence
    metaspace = normalizers.Replace(" ", "▁")
    out = {
        "gpt2": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
        "roberta": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
        "llama3": byte_level(seq([split(CL100K), plain]), ignore_merges=True),
        "qwen2": byte_level(seq([split(QWEN2), plain]), normalizers.NFC()),
        "gptoss": byte_level(seq([split(O200K), plain])),
        "smollm": byte_level(seq([pre_tokenizers.Digits(individual_digits=True),
                                  pre_tokenizers.ByteLevel(add_prefix_space=False)])),
        "deepseek": byte_level(seq([split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK), plain])),
        "llama2": fallback(None, normalizers.Sequence([normalizers.Prepend("▁"), metaspace])),
        "mistral": fallback(pre_tokenizers.Metaspace(prepend_scheme="first", split=False), normalizers.Sequence([])),
        "gemma": fallback(pre_tokenizers.Split(" ", "merged_with_previous"), metaspace),
        "words": byte_level(seq([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation(), plain]),
                            normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])),
        "splits": byte_level(seq([pre_tokenizers.Split(Regex(r"[aeiou]+"), "merged_with_next"),
                                  pre_tokenizers.Split(Regex(r"\p{N}"), "contiguous"),
                                  pre_tokenizers.Split("-", "removed"), plain]),
                             normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(), normalizers.Replace(Regex(r"\s{2,}"), " ")])),
    }
    lines = [t for t in texts() if t]
    done = {}
    for name, (t, trainer) in out.items():
        t.train_from_iterator(lines, trainer)
        done[name] = t
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    t.train_from_iterator(lines, trainers.UnigramTrainer(vocab_size=330, unk_token="<unk>", show_progress=False,
                                                         special_tokens=["<unk>", "</s>", "<s>"]))
    done["unigram"] = t
    for name in ("llama3", "llama2", "mistral", "gemma"):
        t = done[name]
        t.post_processor = processors.TemplateProcessing(single="<s> $A" if name != "gemma" else "<s> $A </s>",
                                                         special_tokens=[(s, t.token_to_id(s)) for s in ("<s>", "</s>")])
    done["gpt2"].add_tokens([AddedToken("  ", normalized=False), AddedToken("world", single_word=True, normalized=False)])
    done["qwen2"].add_tokens([AddedToken("<pad>", lstrip=True, rstrip=True, normalized=False, special=True),
                              AddedToken("é", normalized=True)])
    done["words"].add_tokens([AddedToken("select", normalized=True)])
    return done


def make():
    OUT.mkdir(exist_ok=True)
    (OUT / "texts.hex").write_text("".join(t.encode().hex() + "\n" for t in texts()))
    for name, t in families().items():
        data = json.loads(t.to_str())
        (OUT / (name + ".json")).write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
        ids = (t.encode(x).ids for x in texts())
        (OUT / (name + ".ids")).write_text("".join(" ".join(map(str, i)) + "\n" for i in ids))
        print(name, t.get_vocab_size())


def check(model, binary):
    import xllamacpp
    p = xllamacpp.CommonParams()
    p.model.path = model
    p.n_ctx, p.warmup, p.port, p.n_parallel = 256, False, 0, 1
    server = xllamacpp.Server(p)
    address = server.listening_address
    address = address if address.startswith("http") else "http://" + address
    differ = total = 0
    for text in corpus.all_texts():
        body = json.dumps({"content": text, "add_special": True, "parse_special": True}).encode()
        request = urllib.request.Request(address + "/tokenize", body, {"Content-Type": "application/json"})
        want = json.load(urllib.request.urlopen(request))["tokens"]
        with tempfile.NamedTemporaryFile() as f:
            f.write(text.encode())
            f.flush()
            run = subprocess.run([binary, "tokenize", "--model", model, "--file", f.name, "--json"], stdout=subprocess.PIPE)
        got = json.loads(run.stdout)["tokens"]
        total += 1
        if got != want:
            differ += 1
            print(repr(text[:60]), want[:20], got[:20], sep="\n  ")
    print("%s: %d of %d texts differ" % (model, differ, total))
    sys.stdout.flush()
    os._exit(1 if differ else 0)  # the server's threads do not end by themselves


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--check", metavar="MODEL.gguf")
    a.add_argument("--plimsoll", default="plimsoll")
    o = a.parse_args()
    random.seed(0)
    if o.check:
        check(o.check, o.plimsoll)
    make()


if __name__ == "__main__":
    main()
