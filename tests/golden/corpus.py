"""Texts on which tokenizers are compared: our own, made to be awkward."""

import random

TEXTS = [
    "", " ", "  ", "\n", "\n\n\n", "\t", "a", "Hello, world!", " leading", "trailing ", "  two  spaces  ",
    "The ship's load line isn't where you'd think; they're at 100,000 tonnes, we've 3.14159 m left.",
    "I'LL DON'T WE'RE he'Ll ſ's 's 't'S",
    "0123456789012345678901234567890 1 22 333 4444 55555 1e-06 0x1F 1,234,567.89",
    "int main(void)\n{\n\tfor (int i = 0; i < 10; i++)\n\t\tprintf(\"%d\\n\", a[i] ^ 0xffu);\n    return 0;\n}\n",
    "def f(x: list[int]) -> str:\n    return f\"{x!r:>{10}}\"  # comment\n\n\n@decorator\nclass A: pass\n",
    "<html><body class=\"x\">&amp;<br/></body></html>", "SELECT * FROM t WHERE a <> 'b''c';",
    "https://example.org/a/b?c=d&e=%20f#g user@example.com C:\\dir\\file.txt",
    "吃葡萄不吐葡萄皮。東京都に行きました！안녕하세요 세계 テスト漢字かな混じり文",
    "Привет, мир! Ελληνικά العربية עברית हिन्दी ไทยภาษา தமிழ் বাংলা",
    "naïve café résumé Ångström Straße İstanbul ǅ ﬁ ﬂ ½ ² ① Ⅷ",
    "e\u0301 a\u030a\u0323 n\u0303o \u1e9b\u0323 q\u0307\u0323 Z\u0351\u0365\u034c",
    "😀 👍🏽 👨‍👩‍👧‍👦 🏴‍☠️ 🇫🇷🇯🇵 ❤️‍🔥 1️⃣ ☺ ☺️ 🫠",
    "nbsp\u00a0em\u2003thin\u2009zwsp\u200bfigure\u2007narrow\u202fideo\u3000ogham\u1680nel\u0085ls\u2028ps\u2029x",
    "\u180e \u180ea\u180e\ufeffbom\u2060wj\u00adshy", "tab\tcr\rcrlf\r\nvt\x0bff\x0cend \r\n \r\n  \n x",
    "a\x01b\x1fc\x7fd\x80e", "...!!!???---___***~~~ ### $$$ %%% @@@ ^^^ &&& === +++ |||",
    "“quotes” ‘single’ — em – en … • § ¶ † ‡ ° € £ ¥ ₹ ∑∫√≠≤ → ⇒ ░▒▓ ▁▁ ▁a",
    "CamelCaseWORDSmixedUPandLow HTTPServer2XMLparser iPhone McDonald's",
    "x" * 100, "ab" * 60, "  " * 33 + "x", "\n" * 17 + "y", "=" * 80, "1" * 50, "é" * 30, "한" * 20, "a b " * 25,
    "<s>not special</s> <unk> <|endoftext|> <|im_start|>user\nhi<|im_end|>\n<bos>a<eos><pad> [INST] x [/INST]",
    "<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n", "<0x0A> <0xE2><0x96>", "�\ufffd\ufffe",
    "\U0001d54f\U0001d552 𠀀𪛖 \U000e0041 \ue000", "ق\u064e\u0644\u0628\u064c ك\u0640\u0640\u062a\u0627\u0628", "ก็กี่ก่ำ",
    "don\u2019t it\u2019s l\u2019eau", "word1word2 2word a1b2c3 v2.0.1-rc3+build.5", "一二三四1234五六abc七八",
]


def random_texts(count=200, seed=7):
    """Characters of every kind run together."""
    rng = random.Random(seed)
    pools = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFG", "0123456789", "    \t\n\r", ".,;:!?'\"()[]{}<>/\\|-_=+*&^%$#@~`",
             "éüñçøå", "абвгдеЖ", "漢字日本語中文", "かなカナ", "한국어", "العربية", "\u0301\u0308\u0323\u200d\ufe0f",
             "😀👍🏽👩🇫", "\u00a0\u2003\u3000\u2028\u200b", "½²Ⅷ๓४"]
    out = []
    for _ in range(count):
        text = []
        for _ in range(rng.randint(1, 12)):
            pool = rng.choice(pools)
            text.append("".join(rng.choice(pool) for _ in range(rng.randint(1, 6))))
        out.append("".join(text))
    return out


def all_texts():
    return TEXTS + random_texts()
