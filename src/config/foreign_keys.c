/* Table of other programs' keys and sections. Add a new word to the row with its meaning, or add a
 * new row. In a row, other programs' words come first, then weft's word. A test checks that weft
 * has this last word, and that none of the other programs' words is also a word of weft. */
#include "config/foreign.h"

#include <stddef.h>

#define KEY(words, weft, note)                                                                     \
    {                                                                                              \
        FOREIGN_KEY, words, weft, note                                                             \
    }
#define SECTION(words, weft)                                                                       \
    {                                                                                              \
        FOREIGN_SECTION, words, weft, NULL                                                         \
    }

const ForeignWord foreign_keys[] = {
    /* ---- sections ---- */
    SECTION("optimizer|optimiser|solver|opt|optimization", "optim"),
    SECTION("training|trainer|hyperparameters|hparams|hyp|fit|train_cfg", "train"),
    SECTION("dataset|datasets|dataloader|data_loader|datamodule|dataloaders|input", "data"),
    SECTION("network|net|arch|architecture|backbone", "model"),
    SECTION("distributed|parallel|parallelism|strategy|engine|deepspeed|fsdp", "grid"),
    SECTION("experiment|logging|logger|output", "run"),
    SECTION("checkpointing|checkpoints|saving|ckpt|save", "checkpoint"),
    /* ---- run ---- */
    KEY("random_seed|manual_seed|rng_seed|seed_everything|data_seed|worker_seeding|global_seed",
        "run.seed", NULL),
    KEY("output_dir|save_dir|log_dir|out_dir|work_dir|default_root_dir|root_dir|"
        "project|results_dir|save_path|save_folder|output_path|checkpoint_dir|"
        "ckpt_dir|output|logging_dir|tensorboard_logdir|save|out|outdir|o|logdir|project_dir|"
        "checkpoints|tensorboard_dir|exp_dir",
        "run.dir", "the run's files and checkpoints are in run.dir/run.name"),
    KEY("experiment_name|flag|exp_name|run_name|experiment|job_name|exp|exp_id", "run.name", NULL),
    KEY("time_limit|max_duration|max_hours|timeout|walltime|max_wall_time|"
        "exit_duration_in_mins",
        "run.max_time", NULL),
    KEY("callbacks|callback|hooks|trainer_callbacks", "run.hook",
        "a command that runs in the background; early stopping is train.early_stop"),
    KEY("profile|profiler|timeline|enable_profiling|flops_profiler|torch_profiler|nsys",
        "run.trace", NULL),
    KEY("overwrite|overwrite_output_dir|exist_ok|clean", "run.fresh", NULL),
    KEY("tensorboard|wandb|report_to|use_wandb|use_tensorboard|mlflow|comet|wandb_*|log_wandb|"
        "logger|csv_monitor|tensorboard_*|include_tokens_per_second|log_to_tensorboard",
        NULL, "TensorBoard events and metrics.jsonl are always written; run.hook can send them"),
    /* ---- model ---- */
    KEY("arch|model_name|backbone|network|net|model_type|architecture|model_arch|"
        "model_name_or_path|encoder|net_type|model|a",
        "model.name", NULL),
    KEY("num_classes|n_classes|nb_classes|num_class|nc|num_labels|output_dim", "model.classes",
        NULL),
    KEY("drop_rate|dropout_rate|drop|dropout_prob|dropout_p|hidden_dropout|"
        "hidden_dropout_prob|resid_pdrop|p_dropout",
        "model.dropout", NULL),
    KEY("hidden_sizes|hidden_layers|layer_sizes|hidden_units|hidden_dims|mlp_dims|"
        "fc_dims",
        "model.hidden", NULL),
    KEY("bot_mlp|arch_mlp_bot|bottom_mlp", "model.bottom", NULL),
    KEY("hidden_size|d_model|n_embd|embed_dim|dim|hidden_dim|embedding_dim|n_embed|"
        "model_dim|base_width|width_mult|width_multiplier",
        "model.width", NULL),
    KEY("num_layers|n_layer|n_layers|num_hidden_layers|depth|num_blocks|n_blocks", "model.layers",
        NULL),
    KEY("num_heads|n_head|n_heads|num_attention_heads|nhead|attention_heads", "model.heads", NULL),
    KEY("num_key_value_heads|n_kv_heads|num_kv_heads|num_query_groups|n_head_kv|group_query_"
        "attention|num_kv_groups",
        "model.kv_heads", NULL),
    KEY("intermediate_size|ffn_hidden_size|ffn_dim|dim_feedforward|d_ff|n_inner|"
        "mlp_ratio|mlp_dim",
        "model.ffn", NULL),
    KEY("seq_length|seq_len|block_size|max_seq_len|max_seq_length|context_length|"
        "n_ctx|n_positions|max_position_embeddings|sequence_length|max_length|"
        "sequence_len|bptt",
        "model.context", NULL),
    KEY("vocab_size|n_vocab|num_embeddings|padded_vocab_size", "model.vocab", NULL),
    KEY("rope_theta|rope_base|rotary_emb_base", "model.rotary_base", NULL),
    KEY("rms_norm_eps|norm_eps|norm_epsilon|layernorm_epsilon|layer_norm_epsilon", "model.rms_eps",
        NULL),
    KEY("tie_word_embeddings|tie_embeddings|tie_weights|share_embeddings|"
        "tied_embeddings|untie_embeddings_and_output_weights|untie",
        "model.tied", NULL),
    KEY("position_embedding_type|pos_emb|position_embeddings|pos_embedding|rope|"
        "rotary|use_rotary_position_embeddings|use_rope",
        "model.positions", NULL),
    KEY("pretrained|finetune|model_file|fine_tune|finetuning|init_checkpoint|weights|"
        "pretrained_path|load_weights|initial_checkpoint|pretrained_model|"
        "pretrained_weights|finetune_from|start_from|init_weights|"
        "pretrained_model_name_or_path|load_pretrained|checkpoint_to_load|"
        "transfer_learning",
        "model.init_from",
        "the path of a checkpoint; `weft ckpt import` makes one from a .pth or safetensors file"),
    KEY("freeze_backbone|frozen_layers|unfreeze|unfreeze_layers|freeze_layers|freeze_encoder|"
        "frozen|"
        "requires_grad|trainable",
        "model.freeze", "names or patterns of layers and parameters"),
    KEY("freeze_bn|frozen_bn|bn_frozen|freeze_norms|norm_eval", "model.freeze_norm", NULL),
    KEY("model_ema|model_ema_*|ema_*|ema_decay|use_ema|averaged_model", "train.ema",
        "the decay, such as 0.9999; train.ema_ramp is the number of updates over which it rises"),
    KEY("swa", NULL, "weft averages weights exponentially only, by train.ema"),
    KEY("add_qkv_bias|use_qkv_bias|attention_qkv_bias", "model.qkv_bias", NULL),
    KEY("sliding_window|window_size|attention_window|local_attention|sliding_window_size",
        "model.window", NULL),
    KEY("drop_path|drop_connect|drop_block|stochastic_depth|attention_dropout|layer_drop|"
        "layerdrop|drop_path_rate",
        "model.dropout", "weft has no other dropout"),
    KEY("activation_fn|act_fn|act_layer|nonlinearity|hidden_activation", "model.activation", NULL),
    KEY("bias|disable_bias_linear|swiglu|apply_layernorm_1p|norm_type|hidden_act|"
        "activation_function|kv_channels|head_dim|rotary_percent|bn_momentum|bn_eps|"
        "init_method_std|head_init_scale|head_init_bias|initializer_range|"
        "make_vocab_size_divisible_by|attention_softmax_in_fp32",
        NULL, "model.name decides it; for other layers write a list, model.layers"),
    KEY("in_chans|in_channels|input_shape|img_height|img_width|input_img_mode|num_channels|"
        "input_dim|num_features",
        NULL, "the data set gives the shape of the inputs"),
    KEY("no_load_optim|no_load_rng|no_save_optim|no_save_rng|no_resume_opt|save_only_model|"
        "resume_model_only|load_only_params",
        "model.init_from", "it loads only parameters and running statistics"),
    KEY("model_kwargs|opt_kwargs|optim_args|lr_scheduler_kwargs|kwargs|extra_args|"
        "optimizer_kwargs|scheduler_kwargs",
        NULL, "write each argument as a key: `weft help` lists all"),
    /* ---- data ---- */
    KEY("input_key|input_column|x_key|image_key|feature_key|features|text_column", "data.x", NULL),
    KEY("target_key|target_column|y_key|label_key|label_column|targets|label_names", "data.y",
        NULL),
    KEY("tokenizer|tokenizer_name|tokenizer_type|tokenizer_model|tokenizer_path|vocab_file|"
        "merge_file|merges_file",
        "weft data import text --tokenizer", "texts are tokenized once, by the import"),
    KEY("aspect_ratio|ratio", "data.crop_ratio", "with data.random_resized_crop"),
    KEY("use_cutout|cutout|cutout_prob", "data.augment", "[cutout]"),
    KEY("limit_val_batches|eval_iters|max_eval_samples|val_num_samples|num_sanity_val_steps|"
        "eval_on_start|val_max_steps|num_val_batches|val_batches",
        "train.eval_every", "each evaluation reads all of data.test"),
    KEY("train_data|train_file|data_dir|data_path|dataset|dataset_name|train_dir|"
        "train_path|dataset_path|train_dataset|train_data_path|datadir|trainset|"
        "train_files|dataset_dir|data_root|root|data_prefix|imagenet_dir|train_set|input_bin|train_"
        "bin|tokens_file|train_tokens|corpus",
        "data.train", "an HDF5 file; `weft data import` makes one"),
    KEY("val|valid|validation|val_data|test_data|eval_data|val_dir|test_file|"
        "validation_file|val_file|validation_data|eval_dataset|testset|valset|"
        "val_path|test_path|test_dataset|val_dataset|test_dir|eval_file|val_set|"
        "test_set|valid_file|dev_file|valid_data_path|val_data_path|input_val_bin|val_bin|test_"
        "data_path|eval_data_path",
        "data.test", "an HDF5 file"),
    KEY("num_workers|n_workers|dataloader_num_workers|data_workers|loader_workers|"
        "nworkers|num_data_workers|n_threads_data|j|preprocessing_num_workers|jobs",
        "data.workers", NULL),
    KEY("prefetch_factor|prefetch_size|prefetch_batches|buffer_size|"
        "dataloader_prefetch_factor",
        "data.prefetch", NULL),
    KEY("augmentation|augmentations|transforms|transform|data_augmentation|"
        "auto_augment|rand_augment|vflip|aug_repeats|aug_splits|no_aug|gaussian_blur*|grayscale_"
        "prob|aug|augs|aa",
        "data.augment",
        "[flip, crop, cutout]; others have keys of their own: data.random_resized_crop, "
        "data.color_jitter, data.erasing, data.mixup, data.cutmix"),
    KEY("hflip|horizontal_flip|random_flip|fliplr|random_horizontal_flip", "data.augment",
        "[flip]"),
    KEY("img_size|image_size|imgsz|input_size|resolution|resize_size|img_resize|"
        "train_size|val_resize_size",
        "data.resize",
        "of the short side; squares are data.random_resized_crop, data.random_crop and "
        "data.center_crop"),
    KEY("crop_size|train_crop_size|train_crop_mode", "data.random_resized_crop", NULL),
    KEY("val_crop_size|crop_pct|test_crop_size", "data.center_crop", NULL),
    KEY("image_mean|rgb_mean|normalize_mean|pixel_mean|img_mean", "data.mean", NULL),
    KEY("image_std|rgb_std|normalize_std|pixel_std|img_std", "data.std", NULL),
    KEY("normalization|normalise|standardize|do_normalize", "data.normalize", NULL),
    KEY("rescale_factor|rescale", "data.scale", NULL),
    KEY("interpolation|train_interpolation|resample", "data.filter", NULL),
    KEY("colorjitter|color_aug|colour_jitter|color_jitter_prob|hsv_h|hsv_s|hsv_v",
        "data.color_jitter", NULL),
    KEY("reprob|random_erasing|random_erase|erasing_prob|random_erasing_prob|remode|recount|"
        "resplit",
        "data.erasing", NULL),
    KEY("mixup_alpha|mixup_prob|mixup_mode|mixup_switch_prob|mixup_off_epoch", "data.mixup", NULL),
    KEY("cutmix_alpha|cutmix_prob|cutmix_minmax", "data.cutmix", NULL),
    KEY("data_format|channels_last|memory_format|dataformat|image_data_format", "data.layout",
        "the layout of the file; weft chooses the layouts in memory"),
    KEY("val_split|validation_split|test_size|test_ratio|val_ratio|train_split|split|validation_"
        "split_percentage|val_percent|holdout|"
        "val_size",
        NULL,
        "two files, data.train and data.test; `weft data import text --test-share` and `import "
        "folder` cut a set in two"),
    KEY("drop_last|drop_remainder|dataloader_drop_last", NULL,
        "nothing is dropped: an epoch's last step has the remaining samples"),
    KEY("pin_memory|pin_mem|no_prefetcher|dataloader_persistent_workers|use_multi_epochs_loader|"
        "data_cache_path|reload_dataloaders_every_n_epochs|remove_unused_columns|torch_empty_cache_"
        "steps|skip_memory_metrics|persistent_workers|non_blocking|worker_init_fn|collate_fn|"
        "multiprocessing_context|dataloader_pin_memory|cache|use_cache",
        NULL, "no setting is needed: threads read and decode ahead of the step"),
    KEY("sampler|distributed_sampler|use_distributed_sampler|split_batches|group_by_length|length_"
        "column_name|no_shuffle|dataloader_type|ignore_data_skip|batch_sampler",
        NULL, "every rank reads its part of one permutation; data.shuffle selects it"),
    /* ---- train ---- */
    KEY("batch_size|bs|train_batch_size|global_batch_size|mini_batch_size|"
        "minibatch_size|total_batch_size|batchsize|samples_per_step|n_batch|batch_sz|b|"
        "train_bs|effective_batch_size",
        "train.batch", "samples of a step, over all ranks together"),
    KEY("per_device_train_batch_size|batch_size_per_gpu|per_gpu_batch_size|"
        "batch_size_per_device|micro_batch_size|train_micro_batch_size_per_gpu|"
        "device_batch_size|local_batch_size|samples_per_gpu|per_gpu_train_batch_size",
        "train.micro_batch",
        "samples in one pass through the model; train.batch is the batch of all ranks"),
    KEY("eval_batch_size|val_batch_size|eval_accumulation_steps|test_batch_size|per_device_eval_"
        "batch_size|"
        "validation_batch_size",
        "train.micro_batch", "evaluation uses the same micro-batches"),
    KEY("gradient_accumulation_steps|accumulate_grad_batches|accumulate_steps|"
        "accumulate|grad_accum|accum|auto_find_batch_size|iter_size|update_freq|backward_passes_"
        "per_step|"
        "grad_accum_steps|accumulation_steps|grad_accumulation|num_microbatches|"
        "gradient_accumulation",
        "train.micro_batch",
        "a step has train.batch / train.micro_batch micro-batches, over all ranks"),
    KEY("num_epochs|max_epochs|num_train_epochs|n_epochs|nb_epoch|max_epoch|epoch|"
        "total_epochs|nepochs|train_epochs|nb_epochs|num_epoch",
        "train.epochs", NULL),
    KEY("max_steps|num_steps|max_iters|iterations|train_iters|total_steps|"
        "num_iterations|max_iter|n_iters|train_steps|num_train_steps|training_steps|"
        "max_train_steps|total_iters|iters|num_iters|fast_dev_run|limit_train_batches|train_"
        "samples|max_train_samples|exit_interval|train_num_samples",
        "train.steps", NULL),
    KEY("amp|fp16|bf16|mixed_precision|use_amp|half|dtype|torch_dtype|autocast|"
        "amp_level|opt_level|use_fp16|native_amp|compute_dtype|param_dtype|use_bf16|tf32|amp_dtype|"
        "amp_impl|model_dtype|fp16_opt_level|fp16_backend|fp16_full_eval|bf16_full_eval|half_"
        "precision_backend",
        "train.precision", "bf16 or fp16"),
    KEY("loss_scaling|initial_scale_power|init_scale|grad_scaler|initial_loss_scale|hysteresis|min_"
        "loss_scale",
        "train.loss_scale", NULL),
    KEY("loss_scale_window|growth_interval", "train.loss_scale_steps", NULL),
    KEY("criterion|loss_fn|loss_function|objective|loss_type|loss_func|bce_loss|bce_sum|bce_target_"
        "thresh|jsd_loss",
        "train.loss", "softmax, mse, l1, huber, charbonnier, sigmoid, focal, dice, iou or yolo"),
    KEY("smoothing|label_smooth|label_smoothing_factor|labelsmoothing_eps|ls",
        "train.label_smoothing", NULL),
    KEY("accelerator|use_cuda|cuda|gpu|use_gpu|no_cuda|platform|gpu_id|device_type|"
        "visible_devices|use_cpu|no_accel|gpu_ids|cpu_only|device_ids",
        "train.device", "cuda or cpu; `weft train -n N` sets the number of ranks"),
    KEY("gpus|num_gpus|devices|nproc|nproc_per_node|nprocs|world_size|num_processes|"
        "ngpus|n_gpu|n_gpus|num_devices|nnodes|num_nodes|num_machines|distributed|dist|nranks|"
        "horovod|n_ranks|num_ranks|num_hosts|processes",
        "weft train -n", "an option, not a key; for several hosts: weft run, weft sbatch"),
    KEY("sync_bn|syncbn|sync_batchnorm|convert_sync_batchnorm|sync_bnorm|dist_bn|split_bn",
        "train.sync_batch_norm", NULL),
    KEY("deterministic|cudnn_deterministic|use_deterministic_algorithms|"
        "deterministic_mode|full_determinism",
        "train.reproducible", "results are always the same bits, on every grid"),
    KEY("cudnn_benchmark|benchmark|autotune|max_autotune", "train.cuda_tune",
        "time: measures algorithms once, before the first step"),
    KEY("allow_tf32|matmul_precision|float32_matmul_precision", "train.precision",
        "set it to tf32"),
    KEY("compile|torch_compile|torch_compile_*|torchcompile_mode|torchdynamo|dynamo_*|fuser|jit_"
        "mode_eval|use_ipex|use_liger_kernel|use_flash_attn|flash_attention|attention_backend|attn_"
        "implementation|transformer_impl|use_mcore_models|gelu_fusion|fused|foreach|fast_norm|"
        "inference_mode|torchcompile|jit|xla|use_jit|torchscript|dynamo",
        NULL, "no setting is needed: the whole step is planned before it runs"),
    KEY("find_unused_parameters|ddp_find_unused_parameters|ddp_broadcast_buffers|no_ddp_bb|overlap_"
        "*|contiguous_gradients|reduce_scatter|synchronize_step|static_graph|broadcast_buffers|"
        "gradient_as_bucket_view",
        NULL, "no setting is needed: the graph is known before the first step"),
    KEY("num_threads|omp_num_threads|cpu_threads|num_cpu_threads_per_process|n_threads|"
        "intra_op_parallelism_threads",
        "train.threads", NULL),
    KEY("cuda_graph|use_cuda_graph|use_cuda_graphs|enable_cuda_graph", "train.cuda_graphs", NULL),
    KEY("eval_interval|eval_freq|val_check_interval|check_val_every_n_epoch|"
        "eval_steps|validation_frequency|eval_epochs|val_interval|test_interval|"
        "validate_every|eval_every_n_epochs|evaluation_strategy|eval_strategy|"
        "val_freq|val_loss_every|eval_delay|validation_interval|val_every",
        "train.eval_every", "in epochs"),
    KEY("log_interval|log_freq|print_freq|logging_steps|log_every_n_steps|log_steps|"
        "print_every|print_interval|log_frequency|print_freq_steps|steps_per_print|logging_"
        "strategy|logging_first_step",
        "train.log_every", "in steps"),
    KEY("early_stopping|early_stopping_patience|early_stop_patience|earlystopping|"
        "early_stopping_rounds|es_patience|train.patience|early_stopper|cooldown",
        "train.early_stop", "number of evaluations without improvement"),
    KEY("min_delta|early_stopping_threshold|early_stopping_delta", "train.early_stop_delta", NULL),
    KEY("detect_anomaly|terminate_on_nan|skip_nan|logging_nan_inf_filter|skip_update_*|nan_policy|"
        "check_nan|loss_nan",
        "train.on_bad", NULL),
    KEY("gpu_memory|max_memory|memory_limit|per_process_gpu_memory_fraction", "train.memory", NULL),
    /* ---- optim ---- */
    KEY("optimizer|optimiser|opt|optim|optim_type|optimizer_name|solver|solver_type|"
        "optimizer_type|algorithm",
        "optim.name", NULL),
    KEY("learning_rate|lr0|base_lr|lr_base|init_lr|initial_lr|max_lr|peak_lr|"
        "initial_learning_rate|lr_init|alpha|eta|step_size_lr|blr|start_lr",
        "optim.lr", NULL),
    KEY("lrf|final_lr|min_lr|lr_min|eta_min|end_lr|end_learning_rate|lr_final|learning_rate_decay_"
        "frac|"
        "final_learning_rate",
        "optim.lr_end", "a rate, not a fraction of optim.lr"),
    KEY("scheduler|lr_scheduler|sched|lr_scheduler_type|lr_decay_style|lr_policy|"
        "learning_rate_schedule|scheduler_type|schedule|lr_decay|decay_schedule|"
        "lr_sched|learning_rate_scheduler|annealing|cos_lr|lr_curve|decay_lr|cosine",
        "optim.lr_schedule",
        "constant, multistep, wsd, onecycle, cosine, linear, polynomial or plateau"),
    KEY("step_size|lr_decay_epochs|decay_epochs|lr_steps|decay_milestones|"
        "lr_step_size|lr_milestones|lr_drop|lr_decay_iters|steps_lr",
        "optim.milestones", "a list of epochs, with lr_schedule: multistep"),
    KEY("lr_gamma|decay_rate|lr_decay_rate|lr_factor|lr_decay_factor|factor|"
        "lr_drop_factor",
        "optim.gamma", NULL),
    KEY("warmup|warmup_iters|num_warmup_steps|lr_warmup_iters|warmup_iterations|"
        "lr_warmup_steps|warm_up|n_warmup_steps|warmup_updates|warmup_ratio|"
        "warmup_proportion|warmup_num_steps|lr_warmup_samples",
        "optim.warmup_steps", "or optim.warmup_epochs"),
    KEY("num_warn_up|num_warm_up|lr_warmup_epochs|num_warmup_epochs|warm_epochs|warmup_epoch|"
        "lr_warmup_fraction",
        "optim.warmup_epochs", NULL),
    KEY("wd|l2_reg|l2_regularization|decay|weight_decay_rate|l2_penalty|"
        "kernel_regularizer",
        "optim.weight_decay", NULL),
    KEY("no_decay|no_weight_decay|filter_bias_and_bn|norm_weight_decay|bias_decay|"
        "bias_weight_decay|weight_decay_norm|exclude_from_weight_decay",
        "optim.decay_all", "without it, weight decay skips biases and norms"),
    KEY("betas|opt_betas|adam_beta1|b1|beta_1", "optim.beta1", "and optim.beta2"),
    KEY("adam_beta2|b2|beta_2", "optim.beta2", NULL),
    KEY("adam_epsilon|epsilon|adam_eps|opt_eps", "optim.eps", NULL),
    KEY("use_nesterov", "optim.nesterov", NULL),
    KEY("sgd_momentum|mom|momentum_factor", "optim.momentum", NULL),
    KEY("clip_grad|clip_grad_norm|max_grad_norm|gradient_clip_val|grad_clip|"
        "gradient_clipping|clip_norm|clip_mode|gradient_clip_algorithm|clipnorm|clip_gradients|"
        "global_clipnorm|"
        "max_norm|clip_value|grad_norm_clip",
        "optim.clip", "limit of the global norm"),
    KEY("layer_lr_decay|layerwise_lr_decay|llrd|lr_layer_decay|layer_wise_lr_decay|"
        "layerwise_decay",
        "optim.layer_decay", NULL),
    KEY("param_groups|paramgroups|parameter_groups|paramwise_cfg|params_groups", "optim.groups",
        NULL),
    KEY("lr_patience|plateau_patience|patience_epochs", "optim.patience",
        "with lr_schedule: plateau"),
    KEY("scale_lr|lr_base_size|lr_base_scale|average_tokens_across_devices|auto_scale_lr|auto_lr_"
        "find|linear_scaling|scale_learning_rate",
        NULL,
        "train.batch is the batch of all ranks, so that the rate does not depend on their number"),
    KEY("warmup_lr|lr_warmup_init|warmup_init_lr|warmup_start_factor|warmup_prefix|"
        "warmup_factor|lr_noise*|lr_cycle*|lr_k_decay|"
        "cooldown_epochs|lr_wsd*|lr_decay_samples|sched_on_updates|min_epochs|min_steps|"
        "start_weight_decay|end_weight_decay|weight_decay_incr_style|head_lr_mult|"
        "rampup_batch_size|epoch_repeats|neftune_noise_alpha|overfit_batches",
        NULL, "weft has no such key; run.hook can set any learning rate"),
    /* ---- grid ---- */
    KEY("offload*|cpu_offload|zero3_init_flag|stage3_*|fsdp_offload_params|fsdp_min_num_params|"
        "fsdp_auto_wrap_policy|sub_group_size|nvme_path|"
        "param_offload|optimizer_offload|overwrite_master|autotuning",
        "grid.zero", "3: parameters are divided among the replicas; they stay on the device"),
    KEY("data_parallel|data_parallel_size|dp_size|dp_degree|ddp|num_replicas|"
        "replicas|dp_shard",
        "grid.dp", NULL),
    KEY("strategy|parallel_mode|distributed_strategy|distribution_strategy|"
        "parallel_strategy",
        "grid.dp", "with grid.pp, grid.tp and grid.zero"),
    KEY("tensor_model_parallel_size|tensor_parallel_size|tp_size|mp_degree|tp_degree|"
        "tensor_parallel|model_parallel_size|tensor_model_parallel|mp_size",
        "grid.tp", NULL),
    KEY("pipeline_model_parallel_size|pp_size|pp_degree|pipeline_parallel_size|"
        "pipeline_parallel|num_stages|pipeline_stages|pipeline_size",
        "grid.pp", NULL),
    KEY("zero_stage|zero_optimization|sharding|fsdp|sharding_stage|stage|"
        "use_distributed_optimizer|sharding_degree|sharding_strategy|zero_level|"
        "fully_sharded|sharded_ddp|zero_redundancy_optimizer|deepspeed|deepspeed_stage|fsdp2|"
        "fsdp_sharding_strategy|fsdp_config|data_parallel_sharding_strategy|deepspeed_zero",
        "grid.zero", "0 to 3"),
    KEY("pp_schedule|schedule_type|pipe_schedule|pipeline_type|pipelining_schedule",
        "grid.pipeline_schedule", NULL),
    KEY("virtual_pipeline_model_parallel_size|num_virtual_stages|vpp|vpp_degree|"
        "virtual_stages|interleave|num_layers_per_virtual_pipeline_stage|"
        "num_model_chunks",
        "grid.chunks", NULL),
    KEY("split_points|partition|cut_layers|partition_method|pipeline_split|balance|"
        "layer_split",
        "grid.cuts", NULL),
    KEY("gradient_checkpointing|activation_checkpointing|recompute_granularity|"
        "use_checkpoint|rematerialization|grad_checkpointing|checkpoint_activations|"
        "recompute_activations|remat|use_recompute|grad_ckpt|activation_checkpoint|gradient_"
        "checkpointing_*|recompute_method|recompute_num_layers|"
        "gradient_checkpoint",
        "grid.recompute", "none, block or auto"),
    KEY("backend|dist_backend|distributed_backend|ddp_backend|process_group_backend|"
        "comm_backend|communication_backend",
        "grid.transport", "auto, shm, mpi or nccl"),
    KEY("bucket_cap_mb|ddp_bucket_cap_mb|allgather_bucket_size|bucket_size_mb|reduce_bucket_size|"
        "allreduce_bucket_size|"
        "fusion_threshold|bucket_size|comm_buffer_size_mb",
        "grid.bucket_mb", NULL),
    KEY("parameter_servers|num_servers|ps_num|server_num|num_ps|pservers", "grid.servers", NULL),
    KEY("a_sync|async_mode|sync_mode|async_training|is_sync", "grid.mode",
        "sync, async, geo or stale"),
    KEY("k_steps|sync_period|local_steps|sync_every|geo_sgd_steps|post_local_steps|"
        "geo_need_push_nums",
        "grid.geo_steps", NULL),
    KEY("max_staleness|ssp_staleness|stale_bound", "grid.staleness", NULL),
    KEY("rank|local_rank|node_rank|master_addr|master_port|init_method|dist_url|"
        "rdzv_endpoint|rdzv_backend|rdzv_id|multiprocessing_distributed|process_id|"
        "coordinator_address",
        NULL, "no setting is needed: MPI numbers the ranks and connects them"),
    KEY("expert_parallel_size|num_experts|ep|cp|moe_*|num_local_experts|expert_*|moe|context_"
        "parallel_size|ep_size|cp_size|"
        "sequence_parallel_size",
        NULL, "weft does not divide experts or contexts over ranks"),
    KEY("sequence_parallel", NULL, "grid.tp always does this for layers that work token by token"),
    KEY("fp16_allreduce|gradient_compression|prescale_gradients|gradient_predivide_factor|use_"
        "adasum|communication_data_type|sparse_gradients|fp32_residual_connection|compression|comm_"
        "dtype|powersgd|"
        "fp16_compress|grad_compression",
        NULL, "sums are fp32"),
    /* ---- checkpoint ---- */
    KEY("save_every|save_freq|recovery_interval|save_strategy|save_interval|save_steps|checkpoint_"
        "interval|"
        "checkpoint_frequency|ckpt_interval|save_every_n_steps|snapshot|"
        "snapshot_interval|checkpoint_every|checkpoint_freq|ckpt_freq|save_frequency|"
        "every_n_train_steps|checkpoint_steps|save_checkpoint_every|save_every_steps",
        "checkpoint.every_steps", "or checkpoint.every_epochs, every_s; by default every 900 s"),
    KEY("save_period|every_n_epochs|save_every_epoch|save_every_n_epochs|"
        "checkpoint_every_n_epochs|save_epochs|save_epoch_freq",
        "checkpoint.every_epochs", NULL),
    KEY("save_total_limit|keep_last|max_to_keep|save_top_k|keep_checkpoint_max|"
        "num_to_keep|keep_last_n|max_keep_ckpts|keep_checkpoints|checkpoint_hist",
        "checkpoint.keep", NULL),
    KEY("save_best|save_best_only|load_best_model_at_end|keep_best", "checkpoint.best", NULL),
    KEY("metric_for_best_model|monitor|greater_is_better|eval_metric|best_metric_name|"
        "checkpoint_monitor|watch_metric|metric|metrics",
        "checkpoint.best_metric", NULL),
    KEY("resume_from_checkpoint|ckpt_path|resume_from|restore|load_checkpoint|"
        "auto_resume|checkpoint_path|load_from|reload|resume_path|continue_from|"
        "restore_from|resume_training|load|checkpoint|start_epoch|start_iter|start_step|load_dir",
        "checkpoint.resume",
        "the same command resumes by default; to start from other parameters, set model.init_from"),
    KEY("always_save_checkpoint|enable_checkpointing|ckpt_format|save_safetensors|"
        "save_on_each_node|dist_ckpt_format|checkpoint_format|use_dist_ckpt",
        "weft ckpt export", "checkpoints are always written, as HDF5; this verb converts them"),
    KEY("sample_every|sample_interval|generate_every", "weft generate",
        "it reads any checkpoint of a run"),
    KEY("enable_progress_bar|enable_model_summary|disable_tqdm|progress_bar|num_sanity_checks|"
        "prediction_loss_only|include_for_metrics|include_inputs_for_metrics|barebones|plugins|"
        "accelerator_config",
        NULL, "no setting is needed"),
    KEY("async_save|async_checkpoint|async_checkpointing|background_save", "checkpoint.background",
        NULL),
    {NULL, NULL, NULL, NULL},
};
