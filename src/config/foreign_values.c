/* Table of other programs' values of keys, layers, and attributes of layers; foreign_keys.c says
 * how words are added. */
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
    VALUE("optim.name", "l-bfgs*|l_bfgs*|bfgs|quasi_newton", "lbfgs", NULL),
    VALUE("optim.name", "FusedLAMB|lamb_optimizer|novograd", "lamb", NULL),
    VALUE("optim.name", "rowwise_adagrad|row_wise_adagrad|rowwiseadagrad|EXACT_ROWWISE_ADAGRAD",
          "adagrad_row", NULL),
    VALUE("optim.name", "ftrl_proximal|FtrlOptimizer", "ftrl", NULL),
    VALUE("optim.name",
          "rmsprop*|adadelta|adamax|nadam*|radam|adafactor|sophia*|shampoo|soap|"
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
    VALUE("optim.lr_schedule", "OneCycle*|one_cycle|1cycle", "onecycle",
          "with optim.pct_start and optim.div_factor"),
    VALUE("optim.lr_schedule", "warmup_stable_decay|trapezoidal|trapezoid", "wsd",
          "with optim.warmup_steps and optim.decay_fraction"),
    VALUE("optim.lr_schedule",
          "ConstantLR|none|fixed|constant_with_warmup|false|WarmupLR|const|null", "constant", NULL),
    VALUE("optim.lr_schedule",
          "ExponentialLR|exp|exponential*|CyclicLR|cyclic|inverse_sqrt*|inv*|"
          "noam|rsqrt|cosine_restart*|CosineAnnealingWarmRestarts|sgdr|"
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
    VALUE("checkpoint.best_metric", "miou|mean_iou|iou_score", "iou", NULL),
    VALUE("checkpoint.best_metric", "map|map50|f1|bleu|mae", NULL, NO_SUCH),
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
    {NULL, NULL, NULL, NULL},
};
