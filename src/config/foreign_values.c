/* Table of other programs' values of keys, layers and their attributes, options and verbs; see
 * foreign_keys.c. */
#include "config/foreign.h"

#include <stddef.h>

#define VALUE(key, words, weft, note)                                                              \
    {                                                                                              \
        key, words, weft, note                                                                     \
    }
#define LAYER(words, weft, note)                                                                   \
    {                                                                                              \
        FOREIGN_LAYER, words, weft, note                                                           \
    }
#define ATTR(words, weft, note)                                                                    \
    {                                                                                              \
        FOREIGN_ATTR, words, weft, note                                                            \
    }
#define OPTION(words, weft, note)                                                                  \
    {                                                                                              \
        FOREIGN_OPTION, words, weft, note                                                          \
    }
#define FLAG(words, weft, note)                                                                    \
    {                                                                                              \
        FOREIGN_FLAG, words, weft, note                                                            \
    }
#define VERB(words, weft, note)                                                                    \
    {                                                                                              \
        FOREIGN_VERB, words, weft, note                                                            \
    }

#define NO_SUCH "weft has nothing like it"

const ForeignWord foreign_values[] = {
    /* ---- values ---- */
    VALUE("train.loss",
          "CELoss|CrossEntropyLoss|CrossEntropy|ce|xent|NLLLoss|nll|"
          "categorical_crossentropy|sparse_categorical_crossentropy|"
          "softmax_cross_entropy|softmax_loss|LabelSmoothingCrossEntropy|"
          "CELossWithSmoothing|SoftmaxWithLoss|lm_loss",
          "softmax", NULL),
    VALUE("train.loss",
          "MSELoss|l2|mean_squared_error|l2loss|regression|mse_loss|squared_error|"
          "EuclideanLoss",
          "mse", NULL),
    VALUE("train.loss", "L1Loss|mae|mean_absolute_error|l1_loss|absolute_error|MAELoss", "l1",
          NULL),
    VALUE("train.loss", "HuberLoss|huber_loss", "huber", NULL),
    VALUE("train.loss", "SmoothL1Loss|smooth_l1|smoothl1*|smooth_l1_loss", "huber",
          "divided by beta, with train.huber_delta for beta"),
    VALUE("train.loss", "FocalLoss|focal_loss|sigmoid_focal_loss|CategoricalFocalCrossentropy",
          "focal", NULL),
    VALUE("train.loss", "DiceLoss|dice_loss|soft_dice|SoftDiceLoss|GeneralizedDiceLoss", "dice",
          NULL),
    VALUE("train.loss", "IoULoss|iou_loss|jaccard|JaccardLoss|soft_iou", "iou", NULL),
    VALUE("train.loss", "CharbonnierLoss|charbonnier_loss|pseudo_huber", "charbonnier", NULL),
    VALUE("train.loss",
          "BCE|BCELoss|BCEWithLogitsLoss|BCEWithLogits|binary_crossentropy|"
          "sigmoid_loss|binary_cross_entropy|logistic|logloss|log_loss|binary|"
          "SigmoidCrossEntropyLoss",
          "sigmoid", NULL),
    VALUE("train.loss", "hinge*|kl*|ctc*|triplet*|contrastive*|cosine*", NULL, NO_SUCH),
    VALUE("train.precision",
          "amp|mixed|mixed_precision|auto|true|o1|o2|16|half|float16|16_mixed|"
          "mixed_float16|fp16_mixed|f16|float16_mixed",
          "fp16", "bf16 needs no loss scale"),
    VALUE("train.precision", "bfloat16|bf16_mixed|mixed_bfloat16|b16|brain_float|bf16_true|bfloat",
          "bf16", NULL),
    VALUE("train.precision",
          "float32|float|32|single|full|fp32_true|32_true|f32|o0|false|none|highest", "fp32", NULL),
    VALUE("train.precision", "tensorfloat32|tfloat32|high|tf32_mixed", "tf32", NULL),
    VALUE("train.precision", "float64|double|64|fp64|fp8*|int8|8bit|4bit|float8*", NULL, NO_SUCH),
    VALUE("train.device", "gpu|gpus|nvidia|cuda:*", "cuda", "each rank uses its own GPU"),
    VALUE("train.device", "cpus|cpu:0|host|x86", "cpu", NULL),
    VALUE("train.device", "mps|tpu*|rocm|hip|xpu|npu*|amd|metal|xla", NULL,
          "weft runs on CPUs and NVIDIA GPUs"),
    VALUE("optim.name",
          "momentum|nesterov|sgdm|sgd_momentum|momentum_sgd|gd|sgd_nesterov|"
          "gradient_descent|MomentumOptimizer",
          "sgd", "with optim.momentum and optim.nesterov"),
    VALUE("optim.name",
          "adamw_torch*|adamw_hf|fused_adamw|adam_w|decoupled_adamw|adamw_fused|"
          "adamw_apex*|adamw_bnb*|paged_adamw*|adamw_8bit",
          "adamw", NULL),
    VALUE("optim.name", "fusedadam|fused_adam|deepspeedcpuadam|AdamOptimizer|torch_adam", "adam",
          NULL),
    VALUE("optim.name", "larc|LarsMomentumOptimizer|lars_momentum", "lars", NULL),
    VALUE("optim.name", "FusedLAMB|lamb_optimizer|novograd", "lamb", NULL),
    VALUE("optim.name", "rowwise_adagrad|row_wise_adagrad|rowwiseadagrad|EXACT_ROWWISE_ADAGRAD",
          "adagrad_row", NULL),
    VALUE("optim.name", "ftrl_proximal|FtrlOptimizer", "ftrl", NULL),
    VALUE("optim.name",
          "rmsprop*|adadelta|adamax|nadam*|radam|adafactor|sophia*|shampoo|soap|lbfgs|"
          "rprop|asgd|prodigy|adabelief|lookahead|ranger*",
          NULL, NO_SUCH),
    VALUE("optim.lr_schedule",
          "CosineAnnealingLR|cosine_annealing|cos|cosine_with_warmup|cosine_decay|"
          "CosineLRScheduler|cosine_schedule|CosineAnnealing|warmup_cosine|"
          "WarmupCosineLR|cosine_lr",
          "cosine", "with optim.warmup_steps and optim.lr_end"),
    VALUE("optim.lr_schedule",
          "StepLR|step|MultiStepLR|multi_step|piecewise|piecewise_constant|steps|"
          "staircase|StepDecay|multistep_lr|step_decay",
          "multistep", "with optim.milestones and optim.gamma"),
    VALUE("optim.lr_schedule",
          "ReduceLROnPlateau|reduce_on_plateau|reduce_lr_on_plateau|PlateauLRScheduler", "plateau",
          NULL),
    VALUE("optim.lr_schedule",
          "LinearLR|linear_decay|linear_with_warmup|WarmupDecayLR|linear_warmup|"
          "linear_schedule|WarmupLinear",
          "linear", "with optim.warmup_steps and optim.lr_end"),
    VALUE("optim.lr_schedule", "PolynomialLR|poly|polynomial_decay|poly_lr|PolyLRScheduler",
          "polynomial", "with optim.power"),
    VALUE("optim.lr_schedule",
          "ConstantLR|none|fixed|constant_with_warmup|false|WarmupLR|const|null", "constant", NULL),
    VALUE("optim.lr_schedule",
          "ExponentialLR|exp|exponential*|OneCycle*|CyclicLR|cyclic|inverse_sqrt*|inv*|"
          "noam|rsqrt|cosine_restart*|CosineAnnealingWarmRestarts|sgdr|wsd|"
          "cosine_with_restarts|LambdaLR",
          NULL, "run.hook can set any learning rate"),
    VALUE("grid.zero",
          "full_shard|zero3|stage3|fsdp|stage_3|zero_3|ZeRO-3|FullyShardedDataParallel", "3", NULL),
    VALUE("grid.zero", "shard_grad_op|zero2|stage2|stage_2|zero_2", "2", NULL),
    VALUE("grid.zero", "zero1|stage1|os|stage_1|zero_1|true|optimizer|ZeroRedundancyOptimizer", "1",
          NULL),
    VALUE("grid.zero", "ddp|no_shard|none|zero0|stage0|false|off", "0", NULL),
    VALUE("grid.transport", "gloo|tcp|file|default|sockets", "auto",
          "shared memory on one node, else MPI"),
    VALUE("grid.transport", "ucc|ucx|openmpi|mpich|oneccl|ccl", "mpi", NULL),
    VALUE("grid.transport", "shared_memory|sharedmem|local", "shm", NULL),
    VALUE("grid.transport", "rccl|nccl2|cuda", "nccl", NULL),
    VALUE("grid.recompute", "full|true|always|selective|all|yes|uniform|on", "block", NULL),
    VALUE("grid.recompute", "false|off|never|no|null", "none", NULL),
    VALUE("grid.mode", "bsp|synchronous|allreduce|collective", "sync", NULL),
    VALUE("grid.mode", "asp|hogwild|asynchronous|async_sgd|a_sync", "async", NULL),
    VALUE("grid.mode", "ssp|half_async|bounded", "stale", NULL),
    VALUE("grid.mode", "local_sgd|localsgd|geo_sgd|post_local_sgd|diloco", "geo", NULL),
    VALUE("checkpoint.best_metric",
          "accuracy|acc|acc1|top1_acc|val_acc|val_accuracy|eval_accuracy|accuracy_top1|"
          "prec1|categorical_accuracy|top1_accuracy",
          "top1", NULL),
    VALUE("checkpoint.best_metric", "val_loss|loss|valid_loss|test_loss|perplexity|ppl|mse",
          "eval_loss", NULL),
    VALUE("checkpoint.best_metric", "auroc|roc_auc|val_auc|auc_roc", "auc", NULL),
    VALUE("checkpoint.best_metric", "acc5|top5_acc|val_acc5|prec5|top5_accuracy", "top5", NULL),
    VALUE("checkpoint.best_metric", "map|map50|f1|bleu|iou|miou|mae", NULL, NO_SUCH),
    VALUE("checkpoint.resume", "true|latest|last|yes|must|allow|must_resume", "auto", NULL),
    VALUE("checkpoint.resume", "false|none|never|off|null", "no", NULL),
    VALUE("data.layout", "channels_first|chw|bchw|NCDHW|torch", "nchw", NULL),
    VALUE("data.layout", "channels_last|hwc|bhwc|tf|tensorflow", "nhwc", NULL),
    VALUE("data.augment",
          "hflip|horizontal_flip|random_horizontal_flip|fliplr|mirror|"
          "RandomHorizontalFlip|random_flip",
          "flip", NULL),
    VALUE("data.augment", "random_crop|pad_crop|RandomCrop|shift", "crop", "with data.crop_pad"),
    VALUE("data.augment", "cut_out|random_cutout", "cutout", "with data.cutout_size"),
    VALUE("data.augment", "colorjitter|color_jitter|jitter", NULL, "set data.color_jitter"),
    VALUE("data.augment", "random_resized_crop|RandomResizedCrop|rrc", NULL,
          "set data.random_resized_crop"),
    VALUE("data.augment", "mixup", NULL, "set data.mixup"),
    VALUE("data.augment", "cutmix", NULL, "set data.cutmix"),
    VALUE("data.augment", "random_erasing|RandomErasing|erasing|erase", NULL, "set data.erasing"),
    VALUE("data.augment",
          "randaugment|randaug|autoaugment|augmix|trivialaugment*|mosaic|vflip|rotate|"
          "rotation|random_rotation|affine|normalize|totensor|resize",
          NULL, "other augmentations are keys of section data: `weft help` lists them"),
    VALUE("data.filter", "linear|bilinear_interpolation|2", "bilinear", NULL),
    VALUE("data.filter", "cubic|3", "bicubic", NULL),
    VALUE("data.filter", "nearest|lanczos|area|box|hamming|random", NULL, NO_SUCH),
    VALUE("data.shuffle", "true|yes|random|on|global", "full", NULL),
    VALUE("data.shuffle", "buffer|window|local", "chunks", NULL),
    VALUE("data.shuffle", "false|none|no|off|sequential", NULL,
          "training always shuffles; grid and seed do not change the order"),
    VALUE("model.size", "gpt2|small|117m|base|gpt2_small", "124m", NULL),
    VALUE("model.size", "medium|gpt2_medium|345m|350m", "355m", NULL),
    VALUE("model.size", "large|gpt2_large|762m|760m", "774m", NULL),
    VALUE("model.size", "xl|gpt2_xl|1.5b|1542m", "1558m", NULL),
    VALUE("model.size", "custom|none|default", "own", NULL),
    VALUE("model.stem", "cifar|3x3|tiny|cifar10", "small", NULL),
    VALUE("model.stem", "7x7|standard|default|large", "imagenet", NULL),
    VALUE("model.positions", "rope|rotary_embedding|rotated", "rotary", NULL),
    VALUE("model.positions", "absolute|wpe|learnable|learned_absolute", "learned", NULL),
    VALUE("model.name",
          "mistral*|qwen*|vicuna|codellama|tinyllama|smollm*|yi|LlamaForCausalLM|"
          "alpaca|deepseek*|baichuan*|internlm*",
          "llama", "it has the same blocks; set model.layers, width, heads, ..."),
    VALUE("model.name", "gpt2_medium|gpt2_large|gpt2_xl|gpt2_124m", "gpt2",
          "with model.size: 124m, 355m, 774m or 1558m"),
    VALUE("model.name",
          "gpt|gpt_2|gpt3|gpt2_small|gpt2lmheadmodel|nanogpt|gptneo*|transformer|"
          "decoder",
          "gpt2", NULL),
    VALUE("model.name", "mobilenet|mobilenetv2|mobilenet_v2_1.0", "mobilenet_v2", NULL),
    VALUE("model.name", "yolo|yolov5|yolov5nano|yolov5n6", "yolov5n", NULL),
    VALUE("model.name", "yolov5m|yolov5l|yolov5x", "yolov5n",
          "with model.depth_multiple and model.width_multiple"),
    VALUE("model.name", "lenet5|cnn|simplecnn|convnet|mnistnet", "lenet", NULL),
    VALUE("model.name", "perceptron|fnn|ann|multilayerperceptron|feedforward|logistic_regression",
          "mlp", NULL),
    VALUE("model.name", "wide_and_deep|widedeep|wdl|wnd", "wide_deep", NULL),
    VALUE("model.name",
          "vgg*|alexnet|densenet*|efficientnet*|vit*|swin*|bert*|roberta*|unet3d|segnet|fno|yolov*|"
          "inception*|googlenet|squeezenet*|convnext*|regnet*|t5*|opt|gemma*|phi*|"
          "mobilenetv1|mobilenetv3*|shufflenet*|mnasnet*|deit*|xception|nfnet*|"
          "resnext*|wide_resnet*|senet*|rexnet*|beit*|maxvit*|mixer*|clip*|rnn|lstm*|"
          "gru|gcn|gat|dcn*|xdeepfm|din|ncf|autoint|bst|fm|ssd*|fasterrcnn|maskrcnn|"
          "detr*|mamba*|falcon*|bloom*|albert*|distilbert|electra*|whisper*|wav2vec*|"
          "darknet*|mixtral*",
          NULL, "`weft help` lists the models; for another write a list of layers, model.layers"),
    /* ---- layers ---- */
    LAYER("linear|fc|inner_product|fully_connected|affine|gemm|innerproduct|ffn", "dense", NULL),
    LAYER("conv|convolution|convolution2d|conv2|convolutional|depthwiseconv2d|"
          "separableconv2d",
          "conv2d", "depthwise with groups"),
    LAYER("bn|batchnorm2d|batchnorm1d|batchnormalization|syncbatchnorm|batch_norm2d", "batch_norm",
          NULL),
    LAYER("layernormalization|ln", "layer_norm", NULL),
    LAYER("groupnormalization|gn", "group_norm", NULL),
    LAYER("instancenorm2d|instancenormalization", "instance_norm", NULL),
    LAYER("rmsnormalization|llamarmsnorm", "rms_norm", NULL),
    LAYER("maxpool2d|maxpooling2d|max_pooling|pool|maxpooling|pooling", "max_pool", NULL),
    LAYER("avgpool2d|averagepooling2d|average_pool|mean_pool|avg_pooling|averagepool", "avg_pool",
          NULL),
    LAYER("adaptiveavgpool2d|globalavgpool|globalaveragepooling2d|gap|"
          "global_average_pool|adaptiveavgpool",
          "global_pool", NULL),
    LAYER("upsampling2d|nearest|interpolate|resize", "upsample", NULL),
    LAYER("zeropad2d|zeropadding2d|reflectionpad2d|replicationpad2d|circularpad2d|constantpad2d|"
          "padding",
          "pad", "with mode: zero, reflect, replicate or circular"),
    LAYER("convtranspose2d|deconv|deconvolution|conv2dtranspose|deconv2d", "conv_transpose2d",
          NULL),
    LAYER("depth_to_space|subpixel", "pixel_shuffle", NULL),
    LAYER("centercrop|cropping2d|center_crop", "crop", "with input: [a, b]"),
    LAYER("swish|SiLU", "silu", NULL),
    LAYER("logistic", "sigmoid", NULL),
    LAYER("hard_swish|h_swish", "hardswish", NULL),
    LAYER("multiheadattention|self_attention|mha|causalselfattention|"
          "multi_head_attention",
          "attention", NULL),
    LAYER("embeddingbag|sparse_embedding", "bag", NULL),
    LAYER("concatenate|cat|merge|torch_cat", "concat", NULL),
    LAYER("residual|shortcut|elementwise|eltwise|skip|sum|plus", "add", "with input: [a, b]"),
    LAYER("position_embedding|positional_encoding|wpe|pos_embedding", "positions", NULL),
    LAYER("alphadropout|droppath", "dropout", NULL),
    LAYER("spatialdropout2d|channel_dropout|featuredropout", "dropout2d", NULL),
    LAYER("reshape|view|unsqueeze|squeeze", "flatten", NULL),
    LAYER("softmax|logsoftmax|log_softmax|crossentropyloss", NULL,
          "the loss applies it: leave it out, and set train.loss: softmax"),
    LAYER("lstm|gru|rnn|conv1d|conv3d|prelu|selu|instancenorm1d|instancenorm3d|lrn|"
          "localresponsenorm|hardtanh",
          NULL, "`weft help --layers` lists the layers"),
    ATTR("out_channels|filters|num_filters|n_filters|out|num_output_channels|"
         "out_planes|planes",
         "channels", NULL),
    ATTR("kernel_size|ksize|k|filter_size|pool_size", "kernel", NULL),
    ATTR("strides|s|step", "stride", NULL),
    ATTR("padding|pads|zero_padding", "pad", NULL),
    ATTR("padding_mode", "pad_mode", NULL),
    ATTR("output_padding", "output_pad", NULL),
    ATTR("upscale_factor|scale_factor", "scale", NULL),
    ATTR("out_features|units|num_output|output_dim|size|hidden|n_out|embedding_dim|"
         "embed_dim|output_size",
         "width", NULL),
    ATTR("use_bias|has_bias|bias_term", "bias", NULL),
    ATTR("kernel_initializer|weight_init|initializer|weight_filler", "init", NULL),
    ATTR("rate|prob|dropout_rate|dropout_ratio|ratio|drop_prob", "p", NULL),
    ATTR("epsilon|norm_eps", "eps", NULL),
    ATTR("num_groups|group", "groups", NULL),
    ATTR("num_heads|n_head|n_heads|nhead", "heads", NULL),
    ATTR("num_kv_heads|n_kv_heads|num_key_value_heads", "kv_heads", NULL),
    ATTR("num_embeddings|vocab_size|input_dim|n_vocab", "vocab", NULL),
    ATTR("in_channels|in_features|input_shape|input_size|num_features|"
         "normalized_shape|in|in_planes",
         NULL, "inputs follow from the layer before"),
    ATTR("activation|act|act_layer", NULL, "an activation is a layer of its own: - relu"),
    ATTR("dilation", NULL, "kernels have no gaps"),
    ATTR("inplace|track_running_stats|data_format|trainable|dtype", NULL, "nothing is to be set"),
    /* ---- command line ---- */
    OPTION("gpus|nproc_per_node|num_gpus|np|nprocs|ntasks|n_procs|world_size|"
           "num_processes|devices|nproc|ranks|ngpus|num_workers_mpi|n_gpus|num_ranks|"
           "c_gpus|num_proc",
           "weft train -n", "the number of ranks; each has one GPU if there are GPUs"),
    OPTION("nnodes|num_nodes|nodes|num_machines|machines|n", "weft run --nnodes",
           "or `weft sbatch --nodes`"),
    OPTION("hosts|hostfile|machinefile|host|hostlist|nodelist|host_file|deepspeed_hostfile|"
           "machine_file|h|w",
           "weft run --hostfile", NULL),
    OPTION("include|exclude|num_hosts|include_hosts", "weft run --hostfile",
           "each line of the file is a host to use"),
    OPTION("max_restarts|restarts|elastic|requeue|elastic_training|enable_recovery",
           "weft run --max-restarts", NULL),
    OPTION("log_dir|redirects|tee|logs_specs|local_ranks_filter|output_filename|"
           "enable_each_rank_log|tag_output",
           "weft run --log-dir", "a file for each rank"),
    OPTION("node_rank|master_addr|master_port|rdzv_*|"
           "standalone|local_rank|rank|start_method|dist_url|machine_rank|"
           "main_process_*|local_addr|same_network|role|no_local_rank|no_ssh|save_pid|use_env|"
           "dist_init_method|multi_gpu|use_deepspeed|use_fsdp|use_megatron_lm",
           NULL, "MPI numbers the ranks and connects them: leave it out"),
    OPTION("bind_to|map_by|rank_by|rankfile|oversubscribe|nooversubscribe|allow_run_as_root|mca|"
           "gmca|x|"
           "report_bindings|display_map|display_allocation|use_hwthread_cpus|npernode|pernode|ppr|"
           "ppn|wdir|cpu_set|cpu_list|genv|env|envall|iface|prefix|tune|bind_cores_to_rank|"
           "bind_core_list|numa_binding|launcher_args|timestamp_output|stdin|do_not_launch|xterm|"
           "path|app",
           NULL, "it is an option of mpirun: mpirun OPTIONS weft train CONFIG"),
    OPTION("module|m|no_python|run_path|python|script|training_script", NULL,
           "there is no script: the configuration is the first word"),
    OPTION("monitor_interval|ddp_timeout|distributed_timeout*|dist_timeout|nccl_timeout",
           "weft train", "with train.hang_s=SECONDS"),
    OPTION("config|config_file|cfg|c|config_path|config_name|yaml|conf|f|"
           "deepspeed_config|config_dir",
           NULL, "the configuration is the first word: weft train CONFIG"),
    OPTION("set|override|overrides|o_key|opts|options", NULL,
           "write key=value after the configuration"),
    OPTION("dry_run|test_only|check|validate_only", "weft plan", NULL),
    OPTION("evaluate|eval|eval_only|test|validate|do_eval|e", "weft eval",
           "data.test=FILE sets the data"),
    OPTION("do_train|train", NULL, "weft train does it: leave it out"),
    OPTION("do_predict|predict|infer", "weft predict", NULL),
    OPTION("patience", NULL,
           "train.early_stop=N ends a run, and optim.patience=N lowers its learning rate, after N "
           "evaluations without improvement"),
    OPTION("p", "weft sbatch --partition", NULL),
    OPTION("partition|account|qos|time|gres|gpus_per_node|gpus_per_task|ntasks_per_node|"
           "cpus_per_task|mem|mem_per_*|constraint|exclusive|array|dependency|mail_*|"
           "reservation|signal|chdir|begin|parsable|kill_on_bad_exit|cpu_bind|gpu_bind|hint|"
           "threads_per_core|distribution|error|comment|label|unbuffered|wait|wckey|licenses|a|g",
           "weft sbatch", "it has Slurm's options"),
    OPTION("verbose|debug|quiet|v|vv|q|log_level*|loglevel|verbosity|silent|disable_tqdm|"
           "no_progress|progress_bar|log_on_each_node|wall_clock_breakdown",
           NULL, "there is one log level; train.log_every sets how often a line is written"),
    OPTION("export|onnx|to_onnx|export_onnx|save_onnx|torchscript_out", "weft ckpt export", NULL),
    OPTION("prune|quantize|compress_model|sparsify", "weft ckpt shrink", NULL),
    OPTION("launcher|deepspeed_multinode_launcher|mpi", "weft run --launcher", NULL),
    OPTION("dummy|synthetic|fake_data|dummy_data|random_data", "weft bench step",
           "it needs no data with --input"),
    OPTION("image|images|source|input_image|input_file|img|picture|pictures|files", NULL,
           "weft predict takes files as words after the configuration"),
    OPTION("usage|man|longhelp|full_help|help_all", NULL,
           "--help lists all options, weft help lists all keys"),
    OPTION("version", NULL, "weft --version"),
    OPTION("top_p|min_p|nucleus|typical_p|repetition_penalty|num_beams|beam_size|do_sample|"
           "beams|no_repeat_ngram_size|num_return_sequences|stop|frequency_penalty",
           NULL, "weft generate samples only by --temperature and --top-k"),
    OPTION("push_to_hub|hub_*|trust_remote_code|model_revision|revision|token|auth_token|"
           "download|dataset_download",
           NULL, "weft downloads and uploads nothing"),
    /* ---- flags of verbs ---- */
    FLAG("n|num_nodes|num_machines|nnodes", "--nodes", NULL),
    FLAG("c|cores|cpus", "--cpus-per-task", NULL),
    FLAG("qos|constraint|exclusive|dependency|mail_*|reservation|signal|chdir|begin|mem_per_*|"
         "kill_on_bad_exit|cpu_bind|gpu_bind|hint|threads_per_core|distribution|comment|licenses|"
         "error|nodelist|exclude|requeue",
         "--more", "as in --more '--qos=long --constraint=ib'"),
    FLAG("ntasks", "--ntasks-per-node", "its value times --nodes is the number of ranks"),
    FLAG("p|queue", "--partition", NULL),
    FLAG("t|walltime|time_limit", "--time", NULL),
    FLAG("a|project", "--account", NULL),
    FLAG("gpus_per_node|gres|gpus_per_task|num_gpus", "--gpus", NULL),
    FLAG("weights|ckpt|ckpt_path|checkpoint_path|model|model_path|load|load_from|resume|"
         "pretrained|model_name_or_path|ckpt_file|checkpoint_file|load_checkpoint|model_file|"
         "resume_from|resume_from_checkpoint|init_checkpoint|pth|load_dir|checkpoint_dir|"
         "from_checkpoint|restore|best|pretrained_model|load_weights|snapshot|initial_checkpoint|"
         "state_dict|load_model|trained_model|ckpt_dir|m",
         "--checkpoint", NULL),
    FLAG("max_new_tokens|max_tokens|n_predict|length|num_tokens|max_length|n_tokens|"
         "max_gen_len|tokens_to_generate|out_seq_length|num_samples_tokens|max_len|num_predict|"
         "steps|genlen",
         "--tokens", NULL),
    FLAG("temp", "--temperature", NULL),
    FLAG("k|topk|top_k_sampling", "--top-k", NULL),
    FLAG("text|input_text|query|start|input_prompt|message", "--prompt", NULL),
    FLAG("tokenizer_name|tokenizer_model|tokenizer_path|tokenizer_file|tokenizer_type|vocab_file|"
         "encoding|merge_file|bpe",
         "--tokenizer", NULL),
    FLAG("out|output|out_file|output_file|outfile|save_to|dest|destination|output_path|out_path|"
         "output_dir|out_dir|output_prefix|to|target|save_path|save_dir|outdir|save",
         "-o", NULL),
    FLAG("sep|separator|delimiter|delim|field_separator|header|no_header|columns|names|usecols|"
         "quotechar|label_column|target_column|d|has_header|skiprows|label",
         "--schema", "a file that describes separator, header and columns"),
    FLAG("overwrite|f|replace|overwrite_output_dir|exist_ok|clobber|yes|y_all|overwrite_cache",
         "--force", NULL),
    FLAG("num_workers|workers|jobs|j|nproc|num_proc|preprocessing_num_workers|n_jobs|processes|"
         "n_threads|num_threads|nthreads",
         "--threads", NULL),
    FLAG("size|resize|image_size|img_size|imgsz|resolution|short_side|input_size|max_size",
         "--short", "pixels of the shorter side"),
    FLAG("val_split|test_size|validation_split|test_split|val_size|val_ratio|test_ratio|split|"
         "validation_split_percentage|val_share|test_fraction|val_fraction",
         "--test-share", NULL),
    FLAG("vocab_size|n_vocab|padded_vocab_size", "--vocab", NULL),
    FLAG("class_names|class_map|class_file|label_names|labels|names_file|id2label|classes_file",
         "--classes", NULL),
    FLAG("bit|token_dtype|dtype|word_size", "--bits", NULL),
    FLAG("amount|ratio|pruning_ratio|prune_ratio|fraction|share|rate|compression", "--sparsity",
         NULL),
    FLAG("criterion|importance|pruning_method|strategy|norm|algorithm", "--method", NULL),
    FLAG("hf_config_file|config_file|cfg|config_json|model_config", "--config", NULL),
    FLAG("output_format|as_json", "--json", NULL),
    FLAG("opset|opset_version|to_onnx|onnx_file|format", "--onnx",
         "without it the file is safetensors"),
    FLAG("input_shape|shape|image_shape|in_shape", "--input", NULL),
    FLAG("iters|iterations|num_iters|num_steps|n_iters|max_steps", "--steps", NULL),
    FLAG("repeat|runs|trials|num_runs|rounds", "--repeats", NULL),
    FLAG("warmup_iters|warmup_steps|num_warmup", "--warmup", NULL),
    FLAG("num_samples|n_samples|max_samples|max_train_samples|limit|n_sample", "--samples", NULL),
    FLAG("num_rows|n_rows|nrows", "--rows", NULL),
    FLAG("random_state|random_seed|s|rng_seed", "--seed", NULL),
    FLAG("exclude_tensors|ignore|skip_tensors|ignore_keys|exclude_keys", "--drop", NULL),
    FLAG("map|prefix|strip_prefix|key_mapping|rename_keys|remove_prefix", "--rename", NULL),
    VERB("import|import_data|read|ingest|load_data", "data import folder",
         "or another of weft data import --help; weights go through weft ckpt import"),
    VERB("info|inspect|show|ls|list|stat|head", "data info", "of a checkpoint: weft ckpt info"),
    VERB("check|lint|verify_data|fsck", "data check",
         "of a checkpoint: weft ckpt check; of a configuration: weft plan"),
    VERB("diff|cmp", "ckpt diff", NULL),
    VERB("download|get|fetch|pull|dataset", NULL,
         "weft downloads nothing: datasets/ has scripts that do"),
    VERB("config|init|new|create|template", NULL,
         "jobs/ has configurations to start from, and weft help lists all keys"),
    VERB("version|v|ver", NULL, "weft --version prints it"),
    VERB("tune|sweep|search|hpo|hyperopt|optuna|autotune", NULL,
         "weft has no search over keys: start one run for each combination"),
    VERB("tokenize|tokenizer|encode|train_tokenizer", "data import text", "with --tokenizer"),
    VERB("kill|cancel|stop|ps|status|top|logs|log|tail", NULL,
         "SIGTERM stops a run after a checkpoint; the run's folder has log.txt and "
         "metrics.jsonl"),
    VERB("fit|training|pretrain|finetune|fine_tune|resume|continue|learn|train_net|"
         "main|restart",
         "train", NULL),
    VERB("test|validate|val|evaluate|validation|score|testing|accuracy", "eval", NULL),
    VERB("infer|inference|detect|classify|prediction|forward|serve", "predict", NULL),
    VERB("sample|complete|chat|completion|sampling|text", "generate", NULL),
    VERB("launch|torchrun|mpirun|spawn|elastic|horovodrun|start|accelerate|deepspeed|"
         "srun",
         "run", NULL),
    VERB("submit|slurm|job|batch|queue", "sbatch", NULL),
    VERB("convert|load|from_torch|import_weights", "ckpt import", NULL),
    VERB("export|onnx|to_onnx|save|export_onnx", "ckpt export", NULL),
    VERB("prune|compress|shrink|slim", "ckpt shrink", NULL),
    VERB("summary|describe|dry_run|estimate|params|model_summary|memory", "plan", NULL),
    VERB("diagnose|env|check_env|collect_env|environment|health|selftest", "doctor", NULL),
    VERB("profile|speed|benchmark|perf|time", "bench step", NULL),
    VERB("preprocess|prepare|prepare_data|preprocess_data|build_dataset|make_dataset",
         "data import folder", "or another of weft data import --help"),
    VERB("compare|reproduce|determinism", "verify", NULL),
    /* ---- commands of two words ---- */
    {"data import",
     "imagefolder|image_folder|images|image|dir|directory|imagenet|pictures|jpg|jpeg|png|webp|"
     "photos|img|folders|classification",
     "data import folder", NULL},
    {"data import", "mnist|fashion_mnist|fashion|emnist|kmnist|ubyte|idx3|qmnist",
     "data import idx", NULL},
    {"data import", "cifar10|cifar100|cifar_10|cifar_100", "data import cifar", NULL},
    {"data import", "tsv|table|tabular|titanic|adult|txt_table|pandas|dataframe", "data import csv",
     NULL},
    {"data import",
     "txt|corpus|wikitext|shakespeare|openwebtext|books|char|bytes|enwik8|tinystories|plain",
     "data import text", NULL},
    {"data import", "bin|token|fineweb|llmc|memmap|ids", "data import tokens", NULL},
    {"data import", "h5|hdf|h5py|hdf5_file", "data import hdf5", NULL},
    {"data import", "ml_1m|ml_20m|ml_25m|ml_100k|ml_latest|ratings", "data import movielens", NULL},
    {"data import", "kaggle|criteo_1tb|click_logs|dac|ctr", "data import criteo", NULL},
    {"data import", "detection|boxes|bbox|instances|mscoco|ms_coco|coco_json|lvis|crowdhuman",
     "data import coco", "or data import yolo, data import voc"},
    {"data import", "yolov5|ultralytics|darknet|coco128|labelimg", "data import yolo", NULL},
    {"data import", "pascal|pascal_voc|voc2007|voc2012|vocdevkit|labelme", "data import voc", NULL},
    {"data import", "npz|npy*|numpy|mat|pt|pth|pickle|pkl|torch|zarr|array|arrays", NULL,
     "write the arrays with h5py and read them with weft data import hdf5; weft data import tokens "
     "reads a .npy of tokens"},
    {"data import",
     "json|jsonl|ndjson|parquet|arrow|feather|orc|excel|xlsx|xls|sql|sqlite|libsvm|svmlight|avro|"
     "yaml|xml",
     NULL,
     "convert it to CSV (weft data import csv), or texts to plain files (weft data import text)"},
    {"data import",
     "tfrecord|tfrecords|lmdb|webdataset|wds|recordio|ffcv|mds|tar|zip|beton|hub|hf|huggingface|"
     "datasets|tfds|torchvision|s3|url|http|https",
     NULL,
     "unpack it: weft reads folders of pictures (import folder), CSV, texts, tokens and HDF5"},
    {"data", "show|ls|list|inspect|stat|head*|summary|describe|view|print|dump|shape", "data info",
     NULL},
    {"data", "verify|validate|test|lint|fsck|scan|audit|diff|compare", "data check", NULL},
    {"data", "convert|load|create|prepare|build|make|preprocess|read|ingest|add|pack|export",
     "data import folder", "or another of weft data import --help"},
    {"data", "download|get|fetch|pull", NULL,
     "weft downloads nothing: datasets/ has scripts that do"},
    {"ckpt",
     "convert|load|from_pretrained|from_torch|from_hf|pth|safetensors|hf|torch|add|read|in|"
     "import_weights|migrate",
     "ckpt import", "to another program's format: weft ckpt export"},
    {"ckpt", "save|onnx|to_*|write|out|dump|convert_to_onnx", "ckpt export", NULL},
    {"ckpt", "prune|slim|compress|sparsify|quantize|reduce", "ckpt shrink", NULL},
    {"ckpt", "compare|cmp|same|equal", "ckpt diff", NULL},
    {"ckpt", "show|ls|list|inspect|print|summary|keys|describe|stat|head|view", "ckpt info", NULL},
    {"ckpt", "verify|validate|test|fsck|scrub|lint", "ckpt check", NULL},
    {"bench", "all_reduce|nccl|comms|network|collectives|mpi|bandwidth|latency|osu|communication",
     "bench comm", NULL},
    {"bench", "disk|storage|files|loader|data|read|write|fio|dataloader|input", "bench io", NULL},
    {"bench", "train|model|speed|throughput|training|run|forward|all|e2e", "bench step", NULL},
    {"bench", "gemm|matmul|ops|op|flops|kernel|conv|attention|compute|gpu|cpu", "bench kernels",
     NULL},
    {NULL, NULL, NULL, NULL},
};
