# An empty server, for a command in a mount namespace: folders of the system forget what is written to them, and the names of the page lead to
# this machine. Arguments: a folder with the authority (ca.crt), then the command.
set -eu
folder=$1
shift
mount --make-rprivate /
mkdir "$folder/changes"
mount -t tmpfs tmpfs "$folder/changes"
for name in etc opt var run root usr/local; do
  mkdir -p "$folder/changes/$name" "$folder/changes/work/$name"
done
# In a container these are mounts, which the folder below does not show.
cp /etc/hosts /etc/resolv.conf "$folder/changes/etc/"
for name in etc opt var run root usr/local; do
  mount -t overlay overlay -o "lowerdir=/$name,upperdir=$folder/changes/$name,workdir=$folder/changes/work/$name" "/$name"
done
echo '127.0.0.1 app.example.com sso.example.com' >> /etc/hosts
cat "$folder/ca.crt" >> /etc/ssl/certs/ca-certificates.crt
# In a network namespace, nothing else makes the loopback interface work: SIOCSIFFLAGS with IFF_UP.
/usr/bin/python3 -c 'import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1))'
exec "$@"
