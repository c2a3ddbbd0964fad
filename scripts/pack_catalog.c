/* pack_catalog - lays the records of catalog/ end to end for embedding (build-time tool).
**
**   pack_catalog CATALOG_DIR OUTPUT
**
** For each file, sorted: folder NUL, name without extension NUL, decimal length NUL, text NUL.
** core/base/catalog.c reads it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int pack(const char *dir, const char *kind, const char *ext, FILE *out)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, kind);
    DIR *d = opendir(path);
    if (d == NULL)
        return 0;
    char *names[65536];
    size_t count = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL && count < 65536;) {
        size_t n = strlen(e->d_name), x = strlen(ext);
        if (n > x && strcmp(e->d_name + n - x, ext) == 0)
            names[count++] = strdup(e->d_name);
    }
    closedir(d);
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        char file[8192];
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        FILE *in = fopen(file, "rb");
        if (in == NULL)
            return perror(file), 1;
        char *text = malloc(16u << 20);
        size_t bytes = text ? fread(text, 1, 16u << 20, in) : 0;
        fclose(in);
        if (memchr(text, '\0', bytes) != NULL)
            return fprintf(stderr, "%s: NUL byte\n", file), 1;
        fprintf(out, "%s%c%.*s%c%zu%c", kind, 0, (int)(strlen(names[i]) - strlen(ext)), names[i], 0,
                bytes, 0);
        fwrite(text, 1, bytes, out);
        fputc(0, out);
        free(text);
        free(names[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "usage: pack_catalog CATALOG_DIR OUTPUT\n"), 2;
    FILE *out = fopen(argv[2], "wb");
    if (out == NULL)
        return perror(argv[2]), 1;
    int bad = pack(argv[1], "", ".csv", out) || pack(argv[1], "devices", ".json", out) ||
              pack(argv[1], "engines", ".json", out) || pack(argv[1], "models", ".json", out);
    return fclose(out) != 0 || bad;
}
