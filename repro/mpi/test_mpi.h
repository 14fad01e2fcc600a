// The functions of MPI and UCX that the cases use. Handles are pointers, as in Open MPI.
#pragma once

#define MPI_ERR_OTHER 16

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Barrier(void* communicator);
int MPI_Comm_dup(void* communicator, void** copy);
int MPI_Get_library_version(char* text, int* bytes);
int PMPI_Initialized(int* flag);
int PMPI_Finalized(int* flag);
int MPI_Send(const void* bytes, int count, void* type, int to, int tag, void* communicator);
int ucp_init_version(unsigned major, unsigned minor, const void* parameters, const void* config, void** context);
int ucp_worker_create(void* context, const void* parameters, void** worker);
void ucp_cleanup(void* context);
