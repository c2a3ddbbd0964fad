/* The arrows of the house: which folder may include which, read from the #include lines. */
#include "tests/support.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct room {
    const char *dir;
    const char *may; /* folders it may include from, space separated */
} room;

/* base <- ir <- model <- {host, sim} <- cli; backends see the public headers alone. */
static const room rooms[] = {
    {"include/plimsoll", "include/plimsoll"},
    {"core/base", "include/plimsoll core/base"},
    {"core/ir", "include/plimsoll core/base core/ir"},
    {"core/model", "include/plimsoll core/base core/ir core/model"},
    {"core/host", "include/plimsoll core/base core/ir core/model core/host"},
    {"sim/device", "include/plimsoll core/base core/ir core/model sim/device"},
    {"sim/step", "include/plimsoll core/base core/ir core/model sim/device sim/step"},
    {"sim/market", "include/plimsoll core/base sim/market"},
    {"sim/plan",
     "include/plimsoll core/base core/ir core/model sim/device sim/step sim/market sim/plan"},
    {"cli", "include/plimsoll core/base core/ir core/model core/host sim/device sim/step sim/market sim/plan "
            "cli"},
    {"cli/main", "include/plimsoll cli"},
    {"backends/cpu", "include/plimsoll backends/cpu backends/cpu/fast"},
    {"backends/cpu/fast", "include/plimsoll backends/cpu/fast"},
    {"backends/cuda", "include/plimsoll backends/cuda"},
    {"backends/hip", "include/plimsoll backends/hip"},
    {"backends/vulkan", "include/plimsoll backends/vulkan"},
    {"backends/null", "include/plimsoll backends/null"},
};

static bool listed(const char *list, const char *dir, size_t n)
{
    for (const char *p = list; *p != '\0';) {
        size_t k = strcspn(p, " ");
        if (k == n && strncmp(p, dir, n) == 0)
            return true;
        p += k + (p[k] == ' ');
    }
    return false;
}

/* Checks one line; returns 1 if it is an include of the project, fails on a wrong arrow. */
static int check_line(const room *r, const char *file, const char *line)
{
    while (*line == ' ' || *line == '\t')
        line++;
    if (strncmp(line, "#include \"", 10) != 0)
        return 0;
    const char *path = line + 10, *end = strchr(path, '"');
    assert_non_null(end);
    const char *slash = end;
    while (slash > path && *slash != '/')
        slash--;
    if (slash == path)
        fail_msg("%s/%s: include names no folder: %.*s", r->dir, file, (int)(end - path), path);
    char dir[128];
    size_t n = (size_t)(slash - path);
    snprintf(dir, sizeof dir, "%s%.*s", strncmp(path, "plimsoll/", 9) == 0 ? "include/" : "",
             (int)n, path);
    if (!listed(r->may, dir, strlen(dir)))
        fail_msg("%s/%s includes %.*s: %s may not use %s", r->dir, file, (int)(end - path), path,
                 r->dir, dir);
    return 1;
}

static int check_room(const room *r)
{
    char path[1024];
    int seen = 0;
    snprintf(path, sizeof path, "%s/%s", PLM_ROOT, r->dir);
    DIR *d = opendir(path);
    if (d == NULL)
        return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot == NULL || (strcmp(dot, ".c") != 0 && strcmp(dot, ".h") != 0 &&
                            strcmp(dot, ".def") != 0))
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", PLM_ROOT, r->dir, e->d_name);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        char line[512];
        while (fgets(line, sizeof line, f) != NULL)
            seen += check_line(r, e->d_name, line);
        fclose(f);
    }
    closedir(d);
    return seen;
}

static void arrows_point_one_way(void **state)
{
    (void)state;
    int seen = 0;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        seen += check_room(&rooms[i]);
    assert_true(seen > 100); /* the reader really read the tree */
}

/* The check itself can fail: a wrong line is told from a right one. */
static void wrong_arrow_is_seen(void **state)
{
    (void)state;
    assert_true(listed("core/base core/ir", "core/ir", 7));
    assert_false(listed("core/base core/ir", "sim/step", 8));
    assert_false(listed("core/base core/ir", "core/i", 6));
    assert_int_equal(check_line(&rooms[2], "x.c", "#include <stdio.h>"), 0);
    assert_int_equal(check_line(&rooms[2], "x.c", "#include \"core/base/mem.h\""), 1);
}

/* Functions that only the command line may call, and ones nobody may. */
static void banned_calls_are_absent(void **state)
{
    (void)state;
    static const char *const banned[] = {" printf(", "\tprintf(", " exit(",  " abort(", " gets(",
                                         " sprintf(", " strcat(", " malloc(", " realloc(",
                                         " calloc(",  " free(",   " system(", " popen("};
    int lines = 0;
    for (size_t i = 1; i < 9; i++) { /* core and sim */
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", PLM_ROOT, rooms[i].dir);
        DIR *d = opendir(path);
        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d)) != NULL;) {
            const char *dot = strrchr(e->d_name, '.');
            if (dot == NULL || strcmp(dot, ".c") != 0 || strcmp(e->d_name, "mem.c") == 0)
                continue;
            snprintf(path, sizeof path, "%s/%s/%s", PLM_ROOT, rooms[i].dir, e->d_name);
            FILE *f = fopen(path, "r");
            assert_non_null(f);
            char line[512];
            while (fgets(line, sizeof line, f) != NULL) {
                lines++;
                const char *body = line + strspn(line, " \t");
                if (body[0] == '*' || (body[0] == '/' && body[1] == '*'))
                    continue;
                for (size_t b = 0; b < sizeof banned / sizeof *banned; b++)
                    if (strstr(line, banned[b]) != NULL)
                        fail_msg("%s/%s: banned call:%s in: %s", rooms[i].dir, e->d_name,
                                 banned[b], line);
            }
            fclose(f);
        }
        closedir(d);
    }
    assert_true(lines > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrows_point_one_way),
        cmocka_unit_test(wrong_arrow_is_seen),
        cmocka_unit_test(banned_calls_are_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
