/* The packed catalog (scripts/pack_catalog.c) as read-only data. */
    .section .rodata
    .global plm_catalog_begin
    .global plm_catalog_end
plm_catalog_begin:
    .incbin "catalog.bin"
plm_catalog_end:
    .byte 0xff
    .section .note.GNU-stack,"",%progbits
