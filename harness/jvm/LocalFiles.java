package strata.harness;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Local files as Hadoop writes them, except that it starts no process to set permissions or to look for links. */
public final class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new Files());
  }

  /** The same for Hadoop's other interface, which checkpoints use. */
  public static final class Checkpoints extends DelegateToFileSystem {
    public Checkpoints(URI uri, Configuration conf) throws IOException, URISyntaxException {
      super(uri, new Files(), conf, uri.getScheme(), false);
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }

  private static final class Files extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) {}

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return getFileStatus(path);
    }
  }
}
