/* Table of other programs' options and verbs; foreign_keys.c says how words are added. */
#include "config/foreign.h"

#include <stddef.h>

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

const ForeignWord foreign_commands[] = {
    /* ---- options of any command ---- */
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
