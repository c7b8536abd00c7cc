"""TensorBoard's event files: events written and read, and the values that they carry.

message     events, summary values and tensors as protocol buffers
file        an event file that a thread writes
reading     what an event file holds
histogram   counts of values in buckets
picture     arrays as PNG, and as animated PNG
sound       samples as WAV
plugin      values of TensorBoard's plugins: text, PR curves, meshes, layouts, hyperparameters
graph       nodes of a graph, and the times they took
projector   embeddings, in files of their own
"""
