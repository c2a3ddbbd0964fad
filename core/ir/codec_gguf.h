/* codec_gguf.h - one decoder a type of several numbers a block. */
#ifndef PLM_IR_CODEC_GGUF_H
#define PLM_IR_CODEC_GGUF_H
#include "core/ir/dtype.h"

/* Writes the block's elements (dtype table: `block` of them) from its `block_bytes` bytes. */
typedef void (*plm_block_decoder)(const unsigned char *p, double *y);
/* NULL for types of one number, planar types, and those whose code books are not here (iq1, iq2,
 * iq3). */
plm_block_decoder plm_block_decoder_of(plm_dtype t);

#endif
