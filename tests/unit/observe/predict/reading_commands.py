"""Command lines as agents write them that change nothing, or whose effects cannot be read.

READS: the command changes nothing, or only files in temporary directories. OPAQUE: the text runs code that is
elsewhere, so its effects cannot be read from it. These lines are left out of the measured rates. `changing_commands.py`
explains how the lines were labelled.
"""

from __future__ import annotations

READS = r"""
ls -la
pwd && ls
cat src/cart.py
cat package.json | jq '.scripts'
head -50 src/cart.py
tail -f logs/app.log
tail -n 100 logs/app.log | grep -i error
less README.md
wc -l src/**/*.py
file bin/shop
stat src/cart.py
du -sh * | sort -h
df -h
tree -L 2 -I node_modules
find . -name '*.py' -not -path './.venv/*'
find src -type f -exec grep -l TODO {} +
find . -name '*.py' -print0 | xargs -0 wc -l
find . -newer setup.py -printf '%p\n' 2>/dev/null | head
grep -rn "def total" src --include='*.py'
grep -q foo a.txt && echo yes || echo no
rg -n "TODO|FIXME" src
rg --files | wc -l
fd -e py
ag foo src
ack foo
git status
git status --porcelain=v1 -b
git diff HEAD~1 --stat
git diff --cached
git log --oneline -20
git log -p -- src/cart.py | head -100
git show HEAD:src/cart.py
git blame -L 10,20 src/cart.py
git branch -a
git branch --show-current
git branch -vv --merged main
git remote -v
git rev-parse --abbrev-ref HEAD
git stash list
git stash show -p stash@{0}
git tag -l 'v*'
git tag
git config --get user.email
git config -l
git ls-files | grep test
git ls-remote origin
git merge-base main HEAD
git worktree list
git reflog -10
git grep -n total
git push --dry-run origin main
git clean -nd
git apply --check fix.patch
git -C ../lib log -1 --format=%H
git --no-pager log -3
git cat-file -p HEAD
git bisect log
git submodule status
git describe --tags --always
git check-ignore -v build
cd src && grep -n foo *.py
cd /home/dev/lib && git log -1
sed -n '10,40p' src/cart.py
sed 's/a/b/' file.txt | head
sed -e '/^#/d' -e 's/ *$//' conf.ini
awk '{print $1}' access.log | sort | uniq -c | sort -rn | head
awk -F: '$3 > 1000 {print $1}' /etc/passwd
awk 'NR>10 && NR<20' a.txt
perl -ne 'print if /error/' app.log
sort names.txt | uniq
sort -k2 -t, data.csv
cut -d, -f1 data.csv
tr a-z A-Z < names.txt
diff -u a.txt b.txt
diff <(sort a) <(sort b)
comm -12 a b
cmp a b
md5sum dist.tar.gz
sha256sum -c SHA256SUMS
base64 -d <<< aGVsbG8=
xxd bin/shop | head
strings bin/shop | grep version
od -c a.bin
hexdump -C a.bin | head -5
echo "hello $USER"
printf '%s\n' "$PATH" | tr ':' '\n'
env | grep AWS
printenv HOME
export NODE_ENV=test; echo $NODE_ENV
which python3 && python3 --version
type git
command -v docker >/dev/null 2>&1 || echo missing
node --version
python -V
go version
cargo --version && rustc --version
uname -a
whoami; id; hostname
date +%s
uptime
free -m
nproc
ps aux | grep node
ps -ef --forest
top -bn1 | head -20
lsof -i :3000
ss -tlnp
netstat -an | grep LISTEN
pgrep -fl node
jobs
kill -0 4242
sleep 5
sleep 2 && curl -s localhost:3000/health
true
test -f .env && echo yes
[ -d node_modules ] && echo installed
[[ -f package.json && -d src ]]
if [ -f Makefile ]; then echo make; else echo none; fi
for f in *.py; do echo "$f"; wc -l "$f"; done
while ! nc -z localhost 5432; do sleep 1; done
until curl -sf localhost:3000 >/dev/null; do sleep 1; done
for i in $(seq 1 5); do echo $i; done
curl -s https://api.example.com/orders | jq .
curl -I https://example.com
curl -sS -H 'Accept: application/json' -u a:b https://api.example.com/v1
curl -s -o /dev/null -w '%{http_code}' http://localhost:8000
curl -G --data-urlencode 'q=x y' https://api.example.com/search
curl -X GET https://api.example.com/a
wget -qO- https://example.com/x.txt
wget --spider https://example.com
http GET api.example.com/items
ping -c 3 example.com
dig +short example.com
nslookup example.com
host example.com
jq -r '.[] | .name' data.json
yq '.services' docker-compose.yml
xmllint --xpath '//a' a.xml
tar tzf shop.tar.gz
tar -tf shop.tar | head
unzip -l dist.zip
zcat access.log.gz | head
gzip -dc a.gz | wc -c
gunzip -c a.gz
rsync -avn build/ public/
rm -rf /tmp/shop-build
mkdir -p /tmp/x && cp src/cart.py /tmp/x/
echo test > /tmp/out.txt
git diff > /tmp/fix.patch
curl -s https://example.com -o /tmp/page.html
D=$(mktemp -d) && cp a.txt "$D/" && rm -rf "$D"
cat src/*.py > /dev/null
make -n all
pip list
pip show requests
pip freeze | grep -i django
pip index versions requests
python -m pip list --outdated
python -m json.tool data.json
uv pip list
npm ls --depth=0
npm view react version
npm outdated
npm audit
yarn list
cargo tree
cargo metadata --format-version 1
go list ./...
go env GOPATH
apt list --installed
apt-cache search jq
dpkg -l | grep ssl
brew list
docker ps -a
docker images
docker logs --tail 100 web
docker inspect web
docker compose ps
docker compose logs -f web
docker exec web ls /app
docker stats --no-stream
docker version
kubectl get pods -n prod
kubectl describe pod web-0
kubectl logs -f deploy/web
kubectl config current-context
kubectl exec web-0 -- cat /etc/hosts
kubectl apply --dry-run=client -f k8s/
helm list -A
helm template ./chart
terraform plan
terraform show
aws s3 ls s3://shop-assets/
aws sts get-caller-identity
aws ec2 describe-instances
gcloud projects list
gh pr list
gh pr view 42 --json title,body
gh pr checks
gh run view 123 --log-failed
gh api repos/acme/shop/pulls
gh issue list -L 5
gh auth status
ssh web1 uptime
ssh deploy@web1 'tail -n 50 /var/log/app.log'
psql -U shop -c 'SELECT count(*) FROM carts'
psql shop -c '\d carts'
psql -l
echo 'select 1' | psql shop
sqlite3 shop.db '.schema'
sqlite3 shop.db "SELECT * FROM carts LIMIT 5;"
mysql -e 'SHOW TABLES' shop
redis-cli PING
redis-cli -n 1 GET cart:1
redis-cli INFO memory | grep used
mongosh shop --quiet --eval 'db.carts.countDocuments()'
systemctl status nginx
systemctl list-units --failed
journalctl -u shop -n 50 --no-pager
crontab -l
dmesg | tail
ruff check .
ruff format --check src
black --check .
isort --check-only .
mypy src
npx prettier --check src
npx eslint src
npx tsc --noEmit
gofmt -l .
shellcheck scripts/*.sh
bash -n scripts/deploy.sh
bash -c 'ls | head'
sh -c "grep -c foo a.txt"
timeout 10 tail -f app.log
sudo cat /etc/shadow
sudo lsof -i :80
xargs -n1 echo < list.txt
ls | xargs -I{} echo {}
watch -n 1 'ls -l'
git log --format=%an | sort | uniq -c
history | tail
openssl x509 -in cert.pem -noout -text
openssl s_client -connect example.com:443 </dev/null
nc -zv localhost 5432
basename "$PWD"; dirname /a/b; realpath .
alembic current
python manage.py showmigrations
cat <<'EOF'⏎rm -rf /⏎EOF
echo 'rm -rf build'
grep -r "git push" .github
git log --grep='rm -rf'
# rm -rf build
awk '{ print $1 > "/dev/stderr" }' a
awk '$3 > 1 || $4 < 2' a.txt
TMP=$(mktemp); curl -s https://example.com > "$TMP"; jq . "$TMP"; rm "$TMP"
ssh web1 'df -h; free -m'
timeout 60 bash -c 'until nc -z localhost 5432; do sleep 1; done'
git show HEAD:a.txt | diff - a.txt
poetry run black --check src
diff <(git show HEAD:a.txt) a.txt
psql -c "select * from carts where id = $ID"
while read -r f; do head -1 "$f"; done < files.txt
find . -name '*.py' -exec grep -l foo {} +
env | grep -i path
sudo journalctl -u nginx --since today
docker compose -f a.yml ps
docker image inspect node:20
kubectl -n prod logs deploy/web --tail=50
kubectl get events --sort-by=.lastTimestamp
terraform plan -no-color | head
aws s3 ls s3://bucket/
aws logs tail /aws/lambda/f --since 1h
aws s3api list-objects-v2 --bucket b
gcloud config get-value project
gh pr view 12 --comments
gh api --paginate repos/o/r/issues
gh api graphql -f query='query { viewer { login } }'
ssh web uptime
rsync -avn --delete src/ web:/srv/
psql shop <<'SQL'⏎select * from a;⏎SQL
sqlite3 -header -column app.db 'select 1'
npm view react versions --json
npm run
python -m pip --version
uv cache dir
poetry --version
go list -m all
make -n build
echo "rm -rf /"
sed -n '10,20p' src/a.py
comm -12 <(sort a) <(sort b)
git show --stat HEAD
git stash show -p
git lfs ls-files
git reflog -5
git for-each-ref --sort=-committerdate refs/heads
git push --dry-run
git worktree prune -n
curl -sS -o /dev/null -w '%{http_code}' https://x.org
wget -qO- https://x.org
ps aux | grep node | grep -v grep
systemctl status nginx --no-pager
[ -f package.json ] && cat package.json
x=$(git rev-parse HEAD); echo $x
until curl -sf localhost:8080/health; do sleep 1; done
echo a > /dev/null 2>&1
rm -rf /tmp/build
source .venv/bin/activate && which python
timeout 5 tail -f app.log
find . -maxdepth 2 -not -path '*/node_modules/*' -name package.json
rg -n --hidden foo -g '!node_modules'
bat a.py
npx prettier --check .
uv run mypy src
python3 -c "import json;print(json.load(open('a.json'))['v'])"
node --check a.js
pytest --collect-only -q
brew list --versions
apt-cache policy jq
ssh-keygen -lf k.pub
column -t -s, a.csv
dig +short x.org
docker compose exec web cat /etc/hosts
kubectl apply -f a.yml --dry-run=server
argocd app list
psql -U app -d app -Atc "select count(*) from users where email like '%delete%'"
git commit --help
npm install --help | head
tail -f server.log & sleep 3; kill %1
man git-stash | col -b | head -30
code --list-extensions
dotnet --list-sdks; dotnet list package
mvn -v; mvn dependency:tree | head -50
./gradlew tasks --all | head
docker run --help | head -40
git rebase --help
cargo fmt -- --check
sed -e 's/write/w/' -e '/^$/d' a.txt | diff - b.txt
sed -n 's/width: //p' style.css
sed '/warn/d' app.log | tail
mkdir -p /tmp/x && cd /tmp/x && echo a > b && cat b
git push --help | head; git stash -h; docker run --help; kubectl apply --help
tmux ls; tmux capture-pane -p -t 0 | tail -20; screen -ls
flask routes
cmake -LA -N build | head
"""

OPAQUE = r"""
pytest -q
python -m pytest tests/unit -x
.venv/bin/python -m pytest
make
make test
make -j4 all
npm test
npm run build
npm run lint -- --quiet
yarn build
pnpm -r test
npx vitest run
npx playwright test
python script.py
python scripts/load.py --all
python3 -c 'print(1)'
node server.js
node -e 'console.log(1)'
ruby x.rb
php artisan serve
./run.sh
bash scripts/deploy.sh
sh ./install.sh
source ./env.sh
. ./functions.sh
curl -fsSL https://example.com/install.sh | bash
wget -qO- https://example.com/install.sh | sh
$CMD --all
"$@"
cargo test
cargo run
go test ./...
go run ./cmd/shop
tox -e py311
nox
uv run pytest
poetry run python x.py
uvicorn app:app --reload
flask run
rails server
terragrunt
frobnicate --now
cat list.txt | xargs -n1 ./one.sh
find . -name '*.sh' -exec {} \;
eval "$(ssh-agent -s)"
perl -e 'unlink "x"'
tmux new -d -s dev 'npm run dev'
docker-entrypoint.sh
time make test
nohup python server.py &
./test
env $(cat .env | xargs) node server.js
$(which python) -m pip install x
python x.py --version
awk -f report.awk a.txt
"""
