/* Writes and follows files with the order of requests. A recording renames the files of earlier
 * starts of the same run that begin at its step or later. It overwrites no file, and deletes only
 * empty files. Files of another run are not touched. */
#include "order.h"

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Header of a file. After it comes OrderPlan.run_text, of text_bytes bytes. The other fields are
 * those of OrderPlan. */
typedef struct OrderHead {
    char magic[16];
    int32_t workers, servers;
    int64_t step;
    uint64_t params_hash;
    int64_t text_bytes;
} OrderHead;

static const char ORDER_MAGIC[16] = "weft order 2\n";
enum { RUN_TEXT_MAX = 1 << 24 };

/* Returns the path of the file of a start at `step`; the caller owns it. */
static char *path_of(const OrderPlan *plan, int64_t step)
{
    if (step == 0) return mem_format("%s/server-%d.order", plan->folder, plan->number);
    return mem_format("%s/server-%d.step-%08lld.order", plan->folder, plan->number,
                      (long long)step);
}

/* Reads a file's header and the text after it. The caller owns *text. It is NULL if the file is not
 * an order file, or ends before the end of the text. */
static void read_head(FILE *file, OrderHead *head, char **text)
{
    *text = NULL;
    if (fread(head, sizeof *head, 1, file) != 1) return;
    if (memcmp(head->magic, ORDER_MAGIC, sizeof head->magic) != 0) return;
    if (head->text_bytes < 0 || head->text_bytes > RUN_TEXT_MAX) return;
    *text = mem_new((size_t)head->text_bytes + 1);
    if (fread(*text, 1, (size_t)head->text_bytes, file) != (size_t)head->text_bytes) mem_free(text);
}

/* ---- writing ---- */

/* Renames the file of an earlier start of the same run, and adds 1 to *renamed. Deletes an empty
 * file, whose start was killed before it wrote the header. Does nothing if there is no file.
 * ERR_USAGE: the file is of another run, or no order file. */
static Status rename_old_file(const Order *order, const char *path, int64_t *renamed)
{
    OrderHead head;
    char a[160], b[160], *text, *to = NULL;
    FILE *file = file_open_stream(path);
    if (!file) return errno == ENOENT ? OK : fail(ERR_IO, "%s: %s", path, file_error(errno));
    read_head(file, &head, &text);
    bool empty = fseek(file, 0, SEEK_END) == 0 && ftell(file) == 0;
    fclose(file);
    bool same = text && !config_difference(text, order->plan.run_text, a, b, sizeof a);
    mem_free(&text);
    if (empty) return unlink(path) == 0 ? OK : fail(ERR_IO, "%s: %s", path, file_error(errno));
    if (!same)
        return fail(ERR_USAGE,
                    "%s exists and belongs to another run: name another folder with run.order_log",
                    path);
    TRY(file_move_aside(path, &to));
    *renamed += to != NULL;
    mem_free(&to);
    return OK;
}

/* Renames this server's files of earlier starts that begin at this step or later, since this start
 * makes their steps again. */
static Status rename_replaced_files(const Order *order, int64_t *renamed)
{
    const OrderPlan *plan = &order->plan;
    DIR *folder = opendir(plan->folder);
    if (!folder) return fail(ERR_IO, "%s: %s", plan->folder, file_error(errno));
    Status st = rename_old_file(order, order->path, renamed);
    for (const struct dirent *entry; st == OK && (entry = readdir(folder));) {
        const char *at = strstr(entry->d_name, ".step-");
        long long step = at ? atoll(at + strlen(".step-")) : 0;
        if (step <= plan->step) continue;
        char *found = mem_format("%s/%s", plan->folder, entry->d_name), *path = path_of(plan, step);
        if (strcmp(found, path) == 0) st = rename_old_file(order, path, renamed);
        mem_free(&found);
        mem_free(&path);
    }
    closedir(folder);
    return st;
}

static Status begin_file(Order *order, int64_t *renamed)
{
    const OrderPlan *plan = &order->plan;
    OrderHead head = {.workers = plan->workers,
                      .servers = plan->servers,
                      .step = plan->step,
                      .params_hash = plan->params_hash,
                      .text_bytes = (int64_t)strlen(plan->run_text)};
    memcpy(head.magic, ORDER_MAGIC, sizeof head.magic);
    if (mkdir(plan->folder, 0777) != 0 && errno != EEXIST)
        return fail(ERR_IO, "%s: %s", plan->folder, file_error(errno));
    TRY(rename_replaced_files(order, renamed));
    order->file = fopen(order->path, "wbxe");
    bool good = order->file && fwrite(&head, sizeof head, 1, order->file) == 1 &&
                fwrite(plan->run_text, 1, (size_t)head.text_bytes, order->file) ==
                    (size_t)head.text_bytes &&
                fflush(order->file) == 0;
    return good ? OK : fail(ERR_IO, "%s: %s", order->path, file_error(errno));
}

/* ---- replay ---- */

static void read_next(Order *order)
{
    uint16_t rank = 0;
    order->next = -1;
    if (order->left > 0 && fread(&rank, (size_t)order->rank_bytes, 1, order->file) == 1)
        order->next = rank;
}

/* Returns an error if the header or the text of the file does not fit this start. */
static Status compare(const Order *order, const OrderHead *head, const char *text)
{
    const OrderPlan *plan = &order->plan;
    char a[160], b[160];
    if (head->workers != plan->workers || head->servers != plan->servers)
        return fail(ERR_CONFIG,
                    "%s: was recorded with %d workers and %d servers, this run has %d and %d",
                    order->path, head->workers, head->servers, plan->workers, plan->servers);
    if (config_difference(text, plan->run_text, a, b, sizeof a))
        return fail(ERR_DATA, "%s: is of another run: it has `%s`, this run `%s`", order->path, a,
                    b);
    if (head->step == plan->step && head->params_hash == plan->params_hash) return OK;
    return fail(ERR_DATA,
                "%s: begins at step %lld with parameters of hash %016llx, this run at step %lld "
                "with %016llx: start from the checkpoint from which the recorded run started",
                order->path, (long long)head->step, (unsigned long long)head->params_hash,
                (long long)plan->step, (unsigned long long)plan->params_hash);
}

static Status open_replay(Order *order)
{
    OrderHead head;
    char *text;
    struct stat is;
    order->file = file_open_stream(order->path);
    if (!order->file || fstat(fileno(order->file), &is) != 0)
        return fail(ERR_NOINPUT, "%s: %s", order->path, file_error(errno));
    read_head(order->file, &head, &text);
    if (!text)
        return fail(ERR_DATA, "%s: not an order file, or one of another version of weft",
                    order->path);
    Status st = compare(order, &head, text);
    mem_free(&text);
    order->left =
        ((int64_t)is.st_size - (int64_t)sizeof head - head.text_bytes) / order->rank_bytes;
    read_next(order);
    return st;
}

/* ---- interface ---- */

Status order_open(Order *order, const OrderPlan *plan, int64_t *renamed)
{
    *order = (Order){.plan = *plan, .rank_bytes = plan->workers > 255 ? 2 : 1, .next = -1};
    if (!plan->folder) return OK;
    order->path = path_of(plan, plan->step);
    Status st = plan->replay ? open_replay(order) : begin_file(order, renamed);
    order->plan.run_text = NULL;
    if (st == OK) return OK;
    (void)order_close(order);
    order->next = -1;
    return st;
}

void order_add(Order *order, int rank)
{
    uint16_t value = (uint16_t)rank;
    if (!order->file) return;
    if (order->plan.replay) {
        if (order->left-- == 0)
            die_as(ERR_DATA,
                   "%s: ends before the run does: the recorded run was killed there, or it was "
                   "another run",
                   order->path);
        read_next(order);
    } else if (fwrite(&value, (size_t)order->rank_bytes, 1, order->file) != 1) {
        die_as(ERR_IO, "%s: %s", order->path, file_error(errno));
    }
}

bool order_sync_point(Order *order, int64_t step, bool last)
{
    if (!order->file) return false;
    if (!order->plan.replay) {
        /* A killed run resumes from a checkpoint, which is saved at a sync point. So the file must
         * be complete up to each sync point. */
        if (fflush(order->file) != 0) die_as(ERR_IO, "%s: %s", order->path, file_error(errno));
        return false;
    }
    if (last && order->left > 0)
        die_as(ERR_DATA, "%s: has %lld requests more than this run: it is of another run",
               order->path, (long long)order->left);
    char *path = path_of(&order->plan, step);
    bool later_start = access(path, F_OK) == 0;
    mem_free(&path);
    return order->left == 0 || later_start;
}

Status order_close(Order *order)
{
    bool good = !order->file || fclose(order->file) == 0;
    Status st = good ? OK : fail(ERR_IO, "%s: %s", order->path, file_error(errno));
    order->file = NULL;
    mem_free(&order->path);
    return st;
}
