/* hostile.h - files that loaders must judge rightly: {name, hex, reason}; reason NULL = accepted,
** "+word" = the container is accepted and the model rejected. Sources: llama.cpp tests/test-gguf.cpp
** and pull request 19856, ggml issue 1516, CVE-2026-7482, CVE-2026-27940, the error list of the
** safetensors crate, and public reports named in each. A run-length "(N)" repeats the byte before it N
** times in all. */
static const hostile_file hostile_gguf[] = {
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.empty", 0,
     "",
     "short"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.fugg", 24,
     "465547470300(19)",
     "magic"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.ver0", 24,
     "4747554600(20)",
     "version"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.ver4", 24,
     "474755460400(19)",
     "version"},
    /* ggml-org/llama.cpp#13943 */
    {"FL.gguf.ver3_be", 24,
     "474755460000000300(16)",
     "byte_order"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.nt_max", 24,
     "4747554603000000ff(8)00(8)",
     "count"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.nk_max", 24,
     "474755460300(11)ff(8)",
     "count"},
    /* huggingface/huggingface.js#2020 */
    {"FL.gguf.nt_2p40", 24,
     "474755460300(8)0100(10)",
     "count"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.nk_1_nothing", 24,
     "474755460300(11)0100(7)",
     "short"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.key_len_max", 46,
     "474755460300(11)0100(7)ff(8)6d795f6b65790400000001000000",
     "length"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.key_empty", 40,
     "474755460300(11)0100(15)0400000001000000",
     "key"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.val_type13", 38,
     "474755460300(11)0100(7)0100(7)6b0d00(4)",
     "value_type"},
    /* ggml-org/ggml#1516 */
    {"FL.gguf.str_1gib", 46,
     "474755460300(11)0100(7)0100(7)730800(6)4000(4)78",
     "length"},
    /* gpustack/gguf-parser-go#20 */
    {"FL.gguf.arr_2p61_u64", 50,
     "474755460300(11)0100(7)0100(7)61090000000a00(10)2078",
     "length"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.arr_of_arr", 61,
     "474755460300(11)0100(7)0100(7)6109000000090000000100(19)",
     "value_type"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.align13", 57,
     "474755460300(11)0100(7)1100(7)67656e6572616c2e616c69676e6d656e74040000000d000000",
     "alignment"},
    /* ggml-org/llama.cpp PR 19856 */
    {"FL.gguf.align0", 57,
     "474755460300(11)0100(7)1100(7)67656e6572616c2e616c69676e6d656e740400(7)",
     "alignment"},
    /* ggml-org/ggml#1516 (policy: cap 1 MiB) */
    {"FL.gguf.align_2p30", 57,
     "474755460300(11)0100(7)1100(7)67656e6572616c2e616c69676e6d656e740400(6)40",
     "alignment_cap"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.align1_ok", 57,
     "474755460300(11)0100(7)1100(7)67656e6572616c2e616c69676e6d656e740400000001000000",
     NULL},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.one_f32_ok", 320,
     "47475546030000000100(15)0100(7)74010000004000(282)",
     NULL},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.zero_dim_ok", 64,
     "47475546030000000100(15)0100(7)740100(30)",
     NULL},
    /* ggml-org/llama.cpp#25378 */
    {"FL.gguf.ndims_max", 64,
     "47475546030000000100(15)0100(7)74ff(4)0100(26)",
     "ndims"},
    /* antirez/gguf-tools#25 */
    {"FL.gguf.ndims9", 384,
     "47475546030000000100(15)0100(7)74090000000100(7)0100(7)0100(7)0100(7)0100(7)01"
     "00(7)0100(7)0100(7)0100(282)",
     "ndims"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.dim_neg", 320,
     "47475546030000000100(15)0100(7)7401000000ff(8)00(275)",
     "dim"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.nbytes_wrap", 64,
     "47475546030000000100(15)0100(7)740100(10)201b00(18)",
     "overflow"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.type_max", 320,
     "47475546030000000100(15)0100(7)74010000004000(7)ffffff7f00(271)",
     "tensor_type"},
    /* ggml-org/llama.cpp PR 19856 */
    {"FL.gguf.type_neg", 320,
     "47475546030000000100(15)0100(7)74010000004000(7)ff(4)00(271)",
     "tensor_type"},
    /* own (removed type id) */
    {"FL.gguf.type_removed4", 320,
     "47475546030000000100(15)0100(7)74010000004000(7)0400(274)",
     "tensor_type"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.off_unaligned", 352,
     "47475546030000000100(15)0100(7)74010000004000(11)0100(302)",
     "offset"},
    /* CVE-2026-7482 */
    {"FL.gguf.off_past_eof", 320,
     "47475546030000000100(15)0100(7)74010000004000(12)1000(269)",
     "range"},
    /* gittensor-ai-lab/sparkinfer#25 */
    {"FL.gguf.off_wrap", 320,
     "47475546030000000100(15)0100(7)74010000004000(11)e0ff(7)00(263)",
     "range"},
    /* CVE-2026-7482 */
    {"FL.gguf.size_past_eof", 320,
     "47475546030000000100(15)0100(7)74010000004100(282)",
     "range"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.dup_tensor", 160,
     "47475546030000000200(15)0100(7)74010000000800(19)0100(7)74010000000800(11)20"
     "00(77)",
     "dup_tensor"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp / CVE-2026-27940 */
    {"FL.gguf.sum_wrap", 96,
     "47475546030000000200(15)0100(7)6101000000c0ff(6)7f1800(11)0100(7)6201000000c0"
     "ff(6)7f18000000c0ff(6)7f00(6)",
     "range"},
    /* ggml-org/llama.cpp tests/test-gguf.cpp */
    {"FL.gguf.q8_0_ok", 132,
     "47475546030000000100(15)0100(7)74010000004000(7)0800(86)",
     NULL},
    /* own; class of paiml/realizar#81 */
    {"FL.gguf.head_count_0", 149,
     "474755460300(11)0300(7)1400(7)67656e6572616c2e6172636869746563747572650800000005"
     "00(7)6c6c616d611a00(7)6c6c616d612e617474656e74696f6e2e686561645f636f756e7404"
     "00(7)1600(7)6c6c616d612e656d62656464696e675f6c656e6774680400000040000000",
     "+zero_divisor"},
};
static const hostile_file hostile_safetensors[] = {
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.ok", 66,
     "3600(7)7b2277223a7b226474797065223a22463332222c227368617065223a5b315d2c22646174"
     "615f6f666673657473223a5b302c345d7d7d0000803f",
     NULL},
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.short7", 7,
     "00(7)",
     "header_small"},
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.start_char", 66,
     "3600(7)5b2277223a7b226474797065223a22463332222c227368617065223a5b315d2c22646174"
     "615f6f666673657473223a5b302c345d7d7d00(4)",
     "header_start"},
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.bad_utf8", 15,
     "0700(7)7b22ff223a317d",
     "header_utf8"},
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.bad_json", 13,
     "0500(7)7b2277223a",
     "header_json"},
    /* xz.aliyun.com/news/92700 */
    {"FL.st.dup_key", 118,
     "6a00(7)7b2277223a7b226474797065223a225538222c227368617065223a5b345d2c2264617461"
     "5f6f666673657473223a5b302c345d7d2c2277223a7b226474797065223a22463332222c22736861"
     "7065223a5b315d2c22646174615f6f666673657473223a5b302c345d7d7d0000803f",
     "dup_key"},
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.overlap", 121,
     "6b00(7)7b2261223a7b226474797065223a22463332222c227368617065223a5b315d2c22646174"
     "615f6f666673657473223a5b302c345d7d2c2262223a7b226474797065223a22463332222c227368"
     "617065223a5b315d2c22646174615f6f666673657473223a5b322c365d7d7d00(6)",
     "offsets"},
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.hole", 116,
     "6900(7)7b2261223a7b226474797065223a225538222c227368617065223a5b315d2c2264617461"
     "5f6f666673657473223a5b302c315d7d2c2262223a7b226474797065223a225538222c2273686170"
     "65223a5b315d2c22646174615f6f666673657473223a5b322c335d7d7d000000",
     "offsets"},
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.tail", 67,
     "3600(7)7b2277223a7b226474797065223a22463332222c227368617065223a5b315d2c22646174"
     "615f6f666673657473223a5b302c345d7d7d00(5)",
     "incomplete_cover"},
    /* 0xShug0/audio.cpp#138 */
    {"FL.st.end_lt_begin", 66,
     "3600(7)7b2277223a7b226474797065223a22463332222c227368617065223a5b315d2c22646174"
     "615f6f666673657473223a5b342c305d7d7d00(4)",
     "offsets"},
    /* 0xShug0/audio.cpp#138 */
    {"FL.st.negative", 67,
     "3700(7)7b2277223a7b226474797065223a22463332222c227368617065223a5b315d2c22646174"
     "615f6f666673657473223a5b2d342c305d7d7d00(4)",
     "offsets"},
    /* docs.rs safetensors SafeTensorError */
    {"FL.st.bad_dtype", 66,
     "3600(7)7b2277223a7b226474797065223a22463333222c227368617065223a5b315d2c22646174"
     "615f6f666673657473223a5b302c345d7d7d00(4)",
     "dtype"},
    /* huggingface.co/01data-ai/safetensors_f002 (accepted upstream; a policy choice) */
    {"FL.st.zero_size_shared", 119,
     "6b00(7)7b2261223a7b226474797065223a22463332222c227368617065223a5b305d2c22646174"
     "615f6f666673657473223a5b302c305d7d2c2262223a7b226474797065223a22463332222c227368"
     "617065223a5b315d2c22646174615f6f666673657473223a5b302c345d7d7d00(4)",
     NULL},
    /* ml-explore/mlx#3364 */
    {"FL.st.offsets3", 68,
     "3800(7)7b2277223a7b226474797065223a22463332222c227368617065223a5b315d2c22646174"
     "615f6f666673657473223a5b302c342c385d7d7d00(4)",
     "offsets"},
};
