/* config_keys.h - does an unread key of a config.json change the model? */
#ifndef PLM_MODEL_CONFIG_KEYS_H
#define PLM_MODEL_CONFIG_KEYS_H
#include <jansson.h>
#include <stdbool.h>

/* null, false, 0, "", [] and {} say nothing. */
bool plm_config_value_empty(const json_t *v);
/* True when the key stands for structure that the reader does not know. */
bool plm_config_key_matters(const char *key, const json_t *value);

#endif
