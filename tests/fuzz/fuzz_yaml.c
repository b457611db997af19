/* Any bytes as a YAML tree: accepted trees are linked as yaml.h says. */
#include <assert.h>
#include <string.h>

#include "config/yaml.h"
#include "fuzz.h"

static size_t walk(const struct yaml_node *n, unsigned depth)
{
    assert(depth <= YAML_DEPTH_MAX && n->line >= 1 && n->column >= 1);
    assert((n->kind == YAML_IS_SCALAR) == (n->text != NULL));
    size_t all = 1;
    size_t children = 0;
    for (const struct yaml_node *c = n->first; c; c = c->next) {
        assert((n->kind == YAML_IS_MAP) == (c->key != NULL));
        assert(n->kind != YAML_IS_MAP || yaml_node_get(n, c->key) == c);
        children++;
        all += walk(c, depth + 1);
    }
    assert(children == n->count && (n->kind != YAML_IS_SCALAR || children == 0));
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096) /* yaml_node_get is a walk: long maps would only cost time */
        return 0;
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    struct err e = ERR_INIT;
    if (yaml_tree_parse("fuzz", (const char *)data, size, &t, &e) == 0)
        assert(walk(t->root, 0) <= YAML_NODES_MAX);
    else
        assert(!t && e.code < 0 && strncmp(e.text, "fuzz:", 5) == 0);
    return 0;
}
