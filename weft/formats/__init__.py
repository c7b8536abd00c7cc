"""File formats that several parts of Weft read and write: bytes in, bytes out.

crc32c      the checksum of TensorFlow's formats, and its masked form
wire        protocol buffers' wire format: fields written, and parsed within bounds
tfrecord    files of records with checksums
example     `tf.train.Example` and `SequenceExample` in such records
example_batch   many of them parsed at once
"""
