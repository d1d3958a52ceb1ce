/* The table of other programs' words: every word here is one that weft knows, every other one leads
 * to its row, and no word of weft is among them. */
#include "cli/cli.h"
#include "config/foreign.h"
#include "config/option.h"
#include "harness.h"
#include "layers.h"

/* train.h has a type of the same name as config's private header. */
void train_use_words(void);

/* "weft run --nnodes": a verb, or a verb and one of its flags. */
static bool is_command(const char *text)
{
    if (strncmp(text, "weft ", 5) != 0) return false;
    for (int i = 0; i < verb_count(); ++i) {
        const Verb *v = verb_at(i);
        size_t length = strlen(v->name);
        if (strncmp(text + 5, v->name, length) != 0) continue;
        const char *flag = text + 5 + length;
        if (!*flag || (*flag == ' ' && flag_find(v, flag + 1))) return true;
    }
    return false;
}

static bool is_flag(const char *word)
{
    for (int i = 0; i < verb_count(); ++i)
        if (flag_find(verb_at(i), word)) return true;
    return false;
}

/* "data import", "ckpt": words that commands begin with. */
static bool is_group(const char *words)
{
    size_t length = strlen(words);
    for (int i = 0; i < verb_count(); ++i)
        if (!strncmp(verb_at(i)->name, words, length) && verb_at(i)->name[length] == ' ')
            return true;
    return false;
}

static bool is_verb(const char *group, const char *word)
{
    char *text = mem_format("weft %s%s%s", group, *group ? " " : "", word);
    bool known = is_command(text);
    mem_free(&text);
    return known;
}

static bool is_attr(const char *word)
{
    const LayerKind *kind;
    for (int i = 0; (kind = layer_kind_at(i)); ++i)
        for (int k = 0; kind->attrs && kind->attrs[k]; ++k)
            if (!strcmp(kind->attrs[k], word)) return true;
    return false;
}

/* Is it what weft knows by that word in that place? */
static bool is_known(const char *where, const char *word)
{
    if (!strcmp(where, FOREIGN_KEY)) return option_find(word) >= 0 || is_command(word);
    if (!strcmp(where, FOREIGN_OPTION)) return is_command(word);
    if (!strcmp(where, FOREIGN_FLAG)) return is_flag(word);
    if (!strcmp(where, FOREIGN_LAYER)) return layer_kind(word) != NULL;
    if (!strcmp(where, FOREIGN_ATTR)) return is_attr(word);
    if (!strcmp(where, FOREIGN_SECTION)) {
        for (int i = 0; i < section_count; ++i)
            if (!strcmp(sections[i].name, word)) return true;
        return false;
    }
    if (!strcmp(where, FOREIGN_VERB) || is_group(where)) return is_verb("", word);
    int option = option_find(where);
    return option >= 0 && words_find(option_words(&options[option]), word) >= 0;
}

/* Is it a word of weft in that place, which is never looked up in the table? */
static bool is_weft_word(const char *where, const char *word)
{
    for (int i = 0; !strcmp(where, FOREIGN_KEY) && i < option_count; ++i)
        if (!strcmp(option_leaf(&options[i]), word)) return true;
    if (is_group(where)) return is_verb(where, word);
    return strcmp(where, FOREIGN_KEY) != 0 && strcmp(where, FOREIGN_OPTION) != 0 &&
           strcmp(where, FOREIGN_FLAG) != 0 && is_known(where, word);
}

static int check_words(const ForeignWord *row)
{
    int count = 0;
    char *words = mem_text(row->words), *rest = words;
    for (char *word; (word = strsep(&rest, "|")); ++count) {
        bool pattern = *word && word[strlen(word) - 1] == '*';
        if (pattern) word[strlen(word) - 1] = 0;
        const ForeignWord *found = foreign_find(row->where, word);
        if (found != row || is_weft_word(row->where, word))
            printf("  %s: '%s' is in two rows, or weft's own\n", row->where, word);
        CU_ASSERT_PTR_EQUAL(found, row);
        CU_ASSERT(pattern || !is_weft_word(row->where, word));
    }
    mem_free(&words);
    return count;
}

/* Every word here is one that weft knows; every word of others leads to its row. */
static void test_foreign(void)
{
    const ForeignWord *const tables[] = {foreign_keys, foreign_values, foreign_commands};
    int count = 0;
    train_use_words();
    for (int i = 0; i < 3; ++i)
        for (const ForeignWord *row = tables[i]; row->where; ++row) {
            bool known = row->weft ? is_known(row->where, row->weft) : row->note != NULL;
            if (!known) printf("  %s: '%s' is not known here\n", row->where, row->weft);
            CU_ASSERT(known);
            count += check_words(row);
        }
    CU_ASSERT(count > 1700);
    CU_ASSERT_PTR_NULL(foreign_find(FOREIGN_KEY, "xyzzy"));
    CU_ASSERT_PTR_NULL(foreign_find(FOREIGN_KEY, ""));
    CU_ASSERT_STRING_EQUAL(foreign_find(FOREIGN_KEY, "learningRate")->weft, "optim.lr");
    CU_ASSERT_STRING_EQUAL(foreign_find("train.loss", "CELoss")->weft, "softmax");
}

/* Options of other programs, as their help names them; each has an answer here. */
static const char *const typed[] = {
    /* torchrun */
    "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf standalone "
    "max-restarts monitor-interval start-method role module no-python run-path log-dir "
    "redirects tee local-ranks-filter node-rank master-addr master-port local-addr "
    "logs-specs numa-binding",
    /* timm */
    "data-dir dataset train-split val-split train-num-samples val-num-samples "
    "dataset-download input-img-mode input-key target-key model pretrained "
    "pretrained-path initial-checkpoint resume no-resume-opt num-classes img-size "
    "in-chans input-size crop-pct mean std interpolation batch-size "
    "validation-batch-size channels-last fuser grad-accum-steps grad-checkpointing "
    "fast-norm model-kwargs head-init-scale head-init-bias torchscript torchcompile "
    "torchcompile-mode device amp amp-dtype amp-impl model-dtype no-ddp-bb "
    "synchronize-step opt opt-eps opt-betas momentum weight-decay clip-grad clip-mode "
    "layer-decay opt-kwargs sched sched-on-updates lr lr-base lr-base-size lr-base-scale "
    "lr-noise lr-noise-pct lr-noise-std lr-cycle-mul lr-cycle-decay lr-cycle-limit "
    "lr-k-decay warmup-lr min-lr epochs epoch-repeats start-epoch decay-milestones "
    "decay-epochs warmup-epochs warmup-prefix cooldown-epochs patience-epochs decay-rate "
    "no-aug train-crop-mode scale ratio hflip vflip color-jitter color-jitter-prob "
    "grayscale-prob gaussian-blur-prob aa aug-repeats aug-splits jsd-loss bce-loss "
    "bce-sum bce-target-thresh reprob remode recount resplit mixup cutmix cutmix-minmax "
    "mixup-prob mixup-switch-prob mixup-mode mixup-off-epoch smoothing "
    "train-interpolation drop drop-connect drop-path drop-block bn-momentum bn-eps "
    "sync-bn dist-bn split-bn model-ema model-ema-decay model-ema-force-cpu seed "
    "worker-seeding log-interval recovery-interval checkpoint-hist workers pin-mem "
    "no-prefetcher output experiment eval-metric use-multi-epochs-loader log-wandb",
    /* transformers' TrainingArguments */
    "output_dir overwrite_output_dir do_train do_eval do_predict eval_strategy "
    "prediction_loss_only per_device_train_batch_size per_device_eval_batch_size "
    "gradient_accumulation_steps eval_accumulation_steps eval_delay "
    "torch_empty_cache_steps learning_rate adam_beta1 adam_beta2 adam_epsilon "
    "max_grad_norm num_train_epochs max_steps lr_scheduler_type lr_scheduler_kwargs "
    "warmup_ratio warmup_steps log_level log_level_replica log_on_each_node logging_dir "
    "logging_strategy logging_first_step logging_steps logging_nan_inf_filter "
    "save_strategy save_steps save_total_limit save_safetensors save_on_each_node "
    "save_only_model use_cpu data_seed jit_mode_eval use_ipex bf16 fp16 fp16_opt_level "
    "fp16_backend half_precision_backend bf16_full_eval fp16_full_eval tf32 local_rank "
    "ddp_backend debug dataloader_drop_last eval_steps dataloader_num_workers run_name "
    "disable_tqdm remove_unused_columns label_names load_best_model_at_end "
    "metric_for_best_model greater_is_better ignore_data_skip fsdp fsdp_config deepspeed "
    "accelerator_config label_smoothing_factor optim optim_args group_by_length "
    "length_column_name report_to ddp_find_unused_parameters ddp_bucket_cap_mb "
    "ddp_broadcast_buffers dataloader_pin_memory dataloader_persistent_workers "
    "dataloader_prefetch_factor skip_memory_metrics push_to_hub resume_from_checkpoint "
    "hub_model_id hub_token gradient_checkpointing gradient_checkpointing_kwargs "
    "auto_find_batch_size full_determinism torchdynamo ddp_timeout torch_compile "
    "torch_compile_backend torch_compile_mode split_batches include_tokens_per_second "
    "neftune_noise_alpha eval_on_start use_liger_kernel average_tokens_across_devices "
    "dataset_name train_file validation_file block_size preprocessing_num_workers "
    "validation_split_percentage max_train_samples max_eval_samples model_name_or_path "
    "config_name tokenizer_name model_revision trust_remote_code",
    /* accelerate launch */
    "multi_gpu cpu mixed_precision num_processes num_machines machine_rank "
    "main_process_ip main_process_port num_cpu_threads_per_process gpu_ids "
    "dynamo_backend use_deepspeed use_fsdp use_megatron_lm config_file same_network "
    "zero_stage offload_optimizer_device offload_param_device gradient_clipping "
    "zero3_init_flag deepspeed_hostfile deepspeed_multinode_launcher fsdp_offload_params "
    "fsdp_min_num_params fsdp_sharding_strategy fsdp_auto_wrap_policy",
    /* DeepSpeed */
    "hostfile include exclude num_nodes num_gpus launcher launcher_args no_local_rank "
    "no_ssh elastic_training autotuning bind_cores_to_rank save_pid enable_each_rank_log "
    "train_batch_size train_micro_batch_size_per_gpu optimizer scheduler "
    "zero_optimization steps_per_print wall_clock_breakdown prescale_gradients "
    "sparse_gradients communication_data_type activation_checkpointing flops_profiler "
    "tensorboard wandb csv_monitor offload_optimizer offload_param overlap_comm "
    "reduce_scatter allgather_bucket_size reduce_bucket_size contiguous_gradients "
    "stage3_max_live_parameters hysteresis min_loss_scale",
    /* Megatron-LM */
    "tensor-model-parallel-size pipeline-model-parallel-size num-layers hidden-size "
    "ffn-hidden-size num-attention-heads group-query-attention num-query-groups "
    "kv-channels seq-length max-position-embeddings position-embedding-type rotary-base "
    "rotary-percent use-rotary-position-embeddings normalization norm-epsilon "
    "apply-layernorm-1p swiglu disable-bias-linear add-qkv-bias "
    "untie-embeddings-and-output-weights attention-dropout hidden-dropout "
    "micro-batch-size global-batch-size rampup-batch-size train-iters train-samples "
    "exit-interval exit-duration-in-mins tensorboard-dir use-flash-attn "
    "attention-backend dataloader-type init-method-std lr-decay-style lr-decay-iters "
    "lr-warmup-iters lr-warmup-fraction lr-warmup-samples lr-decay-samples "
    "lr-wsd-decay-style save save-interval no-save-optim load no-load-optim no-load-rng "
    "finetune ckpt-format async-save loss-scale initial-loss-scale loss-scale-window "
    "fp32-residual-connection overlap-grad-reduce overlap-param-gather "
    "use-distributed-optimizer context-parallel-size distributed-backend "
    "distributed-timeout-minutes eval-iters eval-interval data-path split "
    "train-data-path valid-data-path data-cache-path vocab-size vocab-file merge-file "
    "tokenizer-type tokenizer-model num-workers make-vocab-size-divisible-by "
    "recompute-activations recompute-granularity recompute-method recompute-num-layers "
    "sequence-parallel num-experts moe-router-topk transformer-impl use-mcore-models "
    "num-layers-per-virtual-pipeline-stage window-size attention-softmax-in-fp32 "
    "weight-decay-incr-style start-weight-decay head-lr-mult",
    /* Slurm */
    "nodes ntasks ntasks-per-node cpus-per-task gpus gpus-per-node gpus-per-task gres "
    "mem mem-per-cpu mem-per-gpu time partition account qos constraint exclusive "
    "nodelist job-name error array dependency requeue signal mail-type mail-user "
    "reservation chdir export wait hint cpu-bind gpu-bind distribution mpi begin comment "
    "parsable kill-on-bad-exit label unbuffered",
    /* mpirun */
    "np npernode pernode host machinefile rankfile map-by rank-by bind-to "
    "report-bindings oversubscribe use-hwthread-cpus nooversubscribe display-map "
    "display-allocation tag-output timestamp-output output-filename stdin wdir path "
    "prefix mca timeout verbose quiet allow-run-as-root app cpu-set do-not-launch "
    "enable-recovery xterm ppn hosts env genv iface",
    /* nanoGPT */
    "out_dir eval_only always_save_checkpoint init_from wandb_log wandb_project n_layer "
    "n_head n_embd bias max_iters decay_lr grad_clip dtype compile backend",
    /* PyTorch's imagenet example */
    "arch print-freq world-size rank dist-url dist-backend gpu no-accel "
    "multiprocessing-distributed dummy wd evaluate",
    /* Lightning */
    "accelerator strategy devices precision logger callbacks fast_dev_run max_epochs "
    "min_epochs min_steps max_time limit_train_batches limit_val_batches overfit_batches "
    "val_check_interval check_val_every_n_epoch num_sanity_val_steps log_every_n_steps "
    "enable_checkpointing enable_progress_bar enable_model_summary "
    "accumulate_grad_batches gradient_clip_val gradient_clip_algorithm deterministic "
    "benchmark inference_mode use_distributed_sampler profiler detect_anomaly plugins "
    "sync_batchnorm reload_dataloaders_every_n_epochs default_root_dir",
    /* llm.c */
    "input-bin val-loss-every sample-every overwrite-master recompute warmup-iters "
    "learning-rate-decay-frac skip-update-lossz gelu-fusion",
    /* scripts */
    "gamma betas eps nesterov beta1 loss metric save-dir checkpoint checkpoints ckpt-dir "
    "gpu-id cuda no-cuda use-gpu tensorboard-logdir project name exp-name train test val "
    "train-data val-data test-data num-iters steps iters total-steps warmup dropout "
    "hidden layers heads width patience early-stopping min-delta early-stop-patience "
    "save-every save-freq eval-every eval-freq log-every print-every val-freq accum "
    "iter-size clip max-norm label-smoothing cutout random-erasing auto-augment "
    "rand-augment cosine step-size milestones ema swa freeze unfreeze freeze-backbone "
    "image-size input-shape img-height num-threads threads prefetch cache shuffle "
    "no-shuffle profile trace dry-run config cfg set override resume-from auto-resume "
    "start-iter onnx quantize prune local-batch-size tp pp dp ep cp zero fsdp2 ddp "
    "horovod gradient-predivide-factor use-adasum fp16-allreduce distributed dist nranks "
    "num-ranks",
};

/* Words that `weft train` answers with a key, an option or a sentence. */
static void test_typed(void)
{
    int count = 0;
    for (size_t i = 0; i < sizeof typed / sizeof *typed; ++i) {
        char *words = mem_text(typed[i]), *rest = words;
        for (char *word; (word = strsep(&rest, " ")); ++count) {
            bool answered = foreign_find(FOREIGN_OPTION, word) || foreign_find(FOREIGN_KEY, word);
            for (int k = 0; k < option_count && !answered; ++k)
                answered = foreign_words_match(option_leaf(&options[k]), word);
            if (!answered) printf("  no answer to '%s'\n", word);
            CU_ASSERT(answered);
        }
        mem_free(&words);
    }
    CU_ASSERT(count > 500);
}

TEST_MAIN("foreign", {"words", test_foreign}, {"typed", test_typed})
