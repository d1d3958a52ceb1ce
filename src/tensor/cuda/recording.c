/* Records CUDA graphs: the work that is queued on a stream is captured as a graph, which is later
 * launched as one. While a thread captures, it may neither wait for the GPU nor allocate device
 * memory; other threads may do so. */
#include "cuda.h"

struct Recording {
    /* instantiated graph; owned */
    cudaGraphExec_t graph;
};

/* true: between cuda_record_begin and cuda_record_end */
static bool recording_now;

const char *cuda_recording_note(void)
{
    return recording_now ? ", while a CUDA graph is recorded: train.cuda_graphs=off runs without "
                           "CUDA graphs"
                         : "";
}

void cuda_record_begin(Stream *stream)
{
    CUDA_CALL(cudaStreamBeginCapture(stream->handle, cudaStreamCaptureModeThreadLocal));
    recording_now = true;
}

Recording *cuda_record_end(Stream *stream, const char **why)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    cudaError_t error = cudaStreamEndCapture(stream->handle, &graph);
    recording_now = false;
    if (error == cudaSuccess) error = cudaGraphInstantiate(&executable, graph, 0);
    if (graph) CUDA_CALL(cudaGraphDestroy(graph));
    if (error != cudaSuccess) {
        /* clears the error; otherwise the next kernel launch would report it */
        cudaGetLastError();
        *why = cudaGetErrorString(error);
        return NULL;
    }
    Recording *recording = mem_new(sizeof *recording);
    recording->graph = executable;
    return recording;
}

void cuda_replay(Recording *recording, Stream *stream)
{
    CUDA_CALL(cudaGraphLaunch(recording->graph, stream->handle));
}

void cuda_recording_free(Recording **recording)
{
    if (!*recording) return;
    CUDA_CALL(cudaGraphExecDestroy((*recording)->graph));
    mem_free(recording);
}
