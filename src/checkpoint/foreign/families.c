/* The table of families of models. Names and layouts are from the state dicts of torchvision
 * (resnet, mobilenet_v2) and of Hugging Face's transformers (GPT2LMHeadModel, LlamaForCausalLM). */
#include "families.h"

#include <fnmatch.h>
#include <stddef.h>

static const char *const none[] = {NULL};
static const FamilyPack no_pack[] = {{0}};

static const char *const gpt2_skip[] = {"h.*.attn.bias", "h.*.attn.masked_bias", NULL};
static const char *const gpt2_transposed[] = {"h.*.attn.c_attn.weight", "h.*.attn.c_proj.weight",
                                              "h.*.mlp.c_fc.weight", "h.*.mlp.c_proj.weight", NULL};
static const char *const head[] = {"lm_head.*", NULL};

static const char *const llama_skip[] = {"layers.*.rotary_emb.inv_freq", NULL};
static const FamilyPack llama_pack[] = {
    {"self_attn.qkv_proj.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
    {"mlp.gate_up_proj.", {"mlp.gate_proj.", "mlp.up_proj."}},
    {0}};

static const char *const torch_skip[] = {"*.num_batches_tracked", NULL};

const Family families[] = {
    {.name = "gpt2",
     .help = "Hugging Face's GPT-2",
     .foreign_mark = "h.0.attn.c_attn.weight",
     .weft_mark = "h.0.attn.c_attn.weight",
     .prefix = "transformer.",
     .bare = head,
     .skip = gpt2_skip,
     .transposed = gpt2_transposed,
     .pack = no_pack,
     .tied_head = "lm_head.weight",
     .tied_to = "wte.weight"},
    {.name = "llama",
     .help = "Hugging Face's Llama and models of the same structure",
     .foreign_mark = "layers.0.self_attn.q_proj.weight",
     .weft_mark = "layers.0.self_attn.qkv_proj.weight",
     .prefix = "model.",
     .bare = head,
     .skip = llama_skip,
     .transposed = none,
     .pack = llama_pack,
     .tied_head = "lm_head.weight",
     .tied_to = "embed_tokens.weight",
     .may_untie = true},
    {.name = "torch",
     .help = "torchvision's models, and others with weft's names and layouts",
     .prefix = "",
     .bare = none,
     .skip = torch_skip,
     .transposed = none,
     .pack = no_pack},
};
const int family_count = (int)(sizeof families / sizeof *families);

Status family_check(const Family *f, bool last)
{
    const bool lists = f->bare && f->skip && f->transposed && f->pack;
    const char *lacks = !f->help     ? ".help is not given"
                        : !f->prefix ? ".prefix is not given (\"\": none)"
                        : !lists     ? ".bare, .skip, .transposed or .pack is not given"
                        : !f->foreign_mark != last || !f->weft_mark != last
                            ? ".foreign_mark and .weft_mark are for all families but the last"
                        : !f->tied_head != !f->tied_to ? ".tied_head and .tied_to go together"
                                                       : NULL;
    return row_check("family", f->name, f->name ? lacks : ".name is not given");
}

bool family_listed(const char *const *patterns, const char *name)
{
    for (; *patterns; ++patterns)
        if (fnmatch(*patterns, name, 0) == 0) return true;
    return false;
}
