"""Command lines as agents write them, each labelled by hand with what it changes.

The labels say what a command does when it runs in the git repository /home/dev/shop. They were made without regard to
the rules. If a rule disagrees with a label, the rule is wrong, unless running the line shows that the label is wrong.
`⏎` stands for a new line.

CHANGES: `kinds | command`, with every kind of thing that the command changes. Changes that tools make for themselves do
not count, such as a cache in the home directory or the index that `git status` refreshes. The lines of
`reading_commands.py` were labelled in the same way.
"""

from __future__ import annotations

CHANGES = r"""
git | git add -A
git | git add src/cart.py tests/test_cart.py && git commit -m "Round half up"
git | git commit -am 'wip' --no-verify
git | git commit --amend --no-edit
git | git commit -q -F - <<'EOF'⏎Fix the tax⏎⏎It was 19 % too high.⏎EOF
git | git commit -m "$(cat <<'EOF'⏎Fix the tax⏎⏎Co-authored-by: A <a@example.com>⏎EOF⏎)"
git | git stash
git | git stash push -u -m before-rebase && python -m pytest -q; git stash pop
git | git stash && npm test; git stash pop
git | git checkout -b feature/tax
git | git checkout main -- src/cart.py
git | git checkout -- .
git | git checkout HEAD~3 && make test && git checkout -
git | git switch -c hotfix
git | git restore --staged src/cart.py
git | git restore .
git | git reset --hard HEAD~1
git | git reset HEAD src/cart.py
git | git clean -fdx
git | git rebase origin/main
git | git rebase --continue
git | git merge --no-ff feature/tax
git | git cherry-pick 3f2a1bc
git | git revert --no-edit HEAD
git | git tag -a v1.2.0 -m "1.2.0"
git | git branch -D old-feature
git | git branch feature/x
git | git fetch --all --prune
git | git pull --rebase origin main
git remote | git push -u origin feature/tax
git remote | git push --force-with-lease
git remote | git tag v1.2.1 && git push origin v1.2.1
git | git config user.email dev@example.com
git | git remote add upstream git@github.com:acme/shop.git
git | git worktree add ../shop-hotfix hotfix
git | git -C /home/dev/lib commit -am "Bump"
git | cd ../lib && git checkout v2 && cd -
git | git apply fix.patch
git | git am < 0001-fix.patch
git | git submodule update --init --recursive
git | git rm -r --cached node_modules
git | git mv src/a.py src/b.py
git | git init
git | git bisect start HEAD v1.0 && git bisect run ./check.sh
git | git update-index --assume-unchanged config.yml
git | git gc --prune=now
git | git filter-branch --tree-filter 'rm -f secrets.txt' HEAD
path | git clone --depth 1 https://github.com/psf/requests.git
path | git clone git@github.com:acme/lib.git /home/dev/lib2
path | git diff > fix.patch
path | git format-patch -1 HEAD
path | git archive --format=tar.gz -o shop.tar.gz HEAD
path | rm -rf build dist *.egg-info
path | rm -f src/cart.pyc
path | rm -rf node_modules && rm package-lock.json
path | rmdir old
path | unlink current
path | mv src/cart.py src/basket.py
path | mv config.yml config.yml.bak && cp config.example.yml config.yml
path | cp -r templates/ build/templates
path | cp /tmp/result.json data/
path | cp -t backup a.txt b.txt
path | install -m 0755 tool ~/bin/tool
path | ln -sf ../shared/config.yml config.yml
path | mkdir -p src/shop/checkout
path | mkdir -p ~/.config/shop && touch ~/.config/shop/x.toml
path | touch src/shop/__init__.py
path | chmod +x scripts/deploy.sh
path | chmod -R 755 public
path | chown -R dev:dev .
path | truncate -s 0 logs/app.log
path | dd if=/dev/zero of=disk.img bs=1M count=100
path | shred -u secrets.txt
path | sed -i 's/foo/bar/g' src/*.py
path | sed -i.bak -e 's/8080/9090/' docker-compose.yml
path | sed --in-place '/debug/d' config.yml
path | perl -pi -e 's/\bfoo\b/bar/g' src/cart.py
path | perl -i.orig -ne 'print unless /debug/' config.yml
path | awk -i inplace '{print $1}' list.txt
path | awk '{print > $1".txt"}' all.txt
path | sort -u -o names.txt names.txt
path | grep -rl 'foo' src | xargs sed -i 's/foo/bar/g'
path | find . -name '*.pyc' -delete
path | find . -name __pycache__ -type d -prune -exec rm -rf {} +
path | find build -type f -mtime +7 -exec rm {} \;
path | find . -name '*.orig' -print0 | xargs -0 rm -f
path | find . 2>/dev/null -name '*.tmp' -exec rm {} \;
path | find src -name '*.js' -execdir mv {} {}.ts \;
path | ls *.log | xargs -I{} mv {} old/{}
path | ls *.log | xargs -n1 -P4 gzip
path | echo "DEBUG=1" >> .env
path | echo '{}' > data/empty.json
path | cat > src/new.py <<'EOF'⏎print("hello")⏎EOF
path | cat <<EOF > config.toml⏎name = "$USER"⏎EOF
path | cat <<'EOF' >> README.md⏎⏎## Usage⏎EOF
path | printf '%s\n' a b c > list.txt
path | printf 'x\n' | tee -a notes.txt
path | echo secret | sudo tee /etc/shop.conf >/dev/null
path | tee config.json <<< '{"a": 1}'
path | ps aux > processes.txt 2>&1
path | pytest -q 2>&1 | tee test.log
path | make all &> build.log
path | : > empty.log
path | > empty.log
path | { date; uname -a; } > report.txt
path | for f in *.txt; do mv "$f" "${f%.txt}.md"; done
path | for d in a b c; do (cd "$d" && rm -rf build); done
path | while read -r f; do rm "$f"; done < list.txt
path | ls -t | tail -n +6 | while read f; do rm -- "$f"; done
path | if [ -d build ]; then rm -r build; fi
path | [ -f .env ] || cp .env.example .env
path | test -d out || mkdir out
path | clean() { rm -rf build; }; clean
path | bash -c 'rm -rf build && mkdir build'
path | sh -c "cd src && rm -f *.o"
path | bash -lc 'echo hi > hi.txt'
path | bash <<'EOF'⏎cd src⏎rm -f a.o⏎EOF
path | eval "rm -rf build"
path | env -i PATH=/bin rm -rf build
path | env FOO=1 BAR=2 cp a b
path | sudo rm -rf /var/lib/shop
path | sudo -u postgres cp a.conf /etc/postgresql/a.conf
path | nohup cp -r big bigger &
path | nice -n 10 tar czf backup.tar.gz src
path | timeout 30s rm -rf node_modules
path | time cp -r a b
path | command rm x.txt
path | \rm -f x.txt
path | /bin/rm -f x.txt
path | X=build; rm -rf "$X"
path | rm -rf "$BUILD_DIR"
path | rm -rf "${OUT:-out}"
path | echo $(rm -f x.txt; echo done)
path | tar xzf shop.tar.gz
path | tar -xf shop.tar -C vendor
path | tar czf backup.tar.gz src docs
path | tar --create --file=all.tar src
path | unzip -o dist.zip -d public
path | zip -r dist.zip public
path | gzip access.log
path | gunzip dump.sql.gz
path | 7z x assets.7z -oassets
path | patch -p1 < fix.patch
path | rsync -av --delete build/ public/
path | curl -fsSL https://example.com/tool.tar.gz -o tool.tar.gz
path | curl -LO https://example.com/tool.tar.gz
path | wget https://example.com/data.csv
path | wget -q -O data.csv https://example.com/data.csv
path | scp deploy@web1:/var/log/app.log logs/
path | split -l 1000 big.csv part_
path | openssl genrsa -out key.pem 2048
path | ssh-keygen -t ed25519 -f ~/.ssh/id_shop -N ''
path | python -m venv .venv
path | python3 -m venv venv && . venv/bin/activate && pip list
path | virtualenv -p python3.11 env
path | black src tests
path | ruff check --fix .
path | ruff format src
path | isort .
path | npx prettier --write "src/**/*.ts"
path | npx eslint --fix src
path | gofmt -w .
path | go fmt ./...
path | cargo fmt
path | go mod tidy
path | go build -o bin/shop ./cmd/shop
path | cargo build --release
path | npx tsc --outDir dist
path | gcc -O2 -o tool tool.c
path | cmake -S . -B build && cmake --build build -j4
path | protoc --python_out=gen api.proto
path | jq '.version="2"' package.json > p.json && mv p.json package.json
path | yq -i '.version = "2"' chart.yml
path | crontab -l > crontab.bak
path | pip freeze > requirements.txt
path | pip-compile requirements.in
path | git show HEAD:src/cart.py > /home/dev/old_cart.py
path git | sed -i 's/1.0/1.1/' version.txt && git commit -am 'Bump'
path git | cp src/cart.py /tmp/keep.py && git checkout src/cart.py && pytest; cp /tmp/keep.py src/cart.py
packages | pip install -r requirements.txt
packages | pip install -U 'requests>=2.31'
packages | python -m pip install -e '.[test]'
packages | python3 -m pip uninstall -y requests
packages | .venv/bin/pip install pytest
packages | uv pip install numpy
packages | uv sync --frozen
packages | uv add httpx
packages | poetry install --no-root
packages | poetry add httpx
packages | pipx install ruff
packages | conda install -y numpy
packages | npm install
packages | npm ci
packages | npm i -D typescript
packages | npm install -g pnpm
packages | npm uninstall lodash
packages | yarn
packages | yarn add react
packages | pnpm install --frozen-lockfile
packages | bun install
packages | cd web && npm ci && npm run build
packages | cargo add serde
packages | cargo install ripgrep
packages | go get example.com/x@latest
packages | go install golang.org/x/tools/gopls@latest
packages | bundle install
packages | gem install rails
packages | composer require monolog/monolog
packages | sudo apt-get update && sudo apt-get install -y postgresql-client
packages | apt install -y jq
packages | DEBIAN_FRONTEND=noninteractive apt-get -y upgrade
packages | apk add --no-cache curl
packages | dnf install -y gcc
packages | brew install jq
packages | pacman -S --noconfirm jq
packages | rustup toolchain install nightly
packages | nvm install 20
container | docker build -t shop:dev .
container | docker run --rm -it shop:dev bash
container | docker run -d --name db -e POSTGRES_PASSWORD=x -p 5432:5432 postgres:16
container | docker compose up -d
container | docker compose down -v
container | docker-compose build web
container | docker stop db && docker rm db
container | docker rmi $(docker images -q -f dangling=true)
container | docker system prune -af
container | docker pull redis:7
container | docker exec web rm -rf /app/cache
container | docker volume rm shop_pgdata
path container | docker cp web:/app/log.txt . && docker restart web
container | podman run --rm alpine true
container | minikube start
remote | docker push registry.example.com/shop:1.2
remote | kubectl apply -f k8s/
remote | kubectl delete pod web-0
remote | kubectl -n prod rollout restart deployment/web
remote | kubectl scale deploy web --replicas=3
remote | kubectl exec web-0 -- rm -rf /tmp/cache
remote | helm upgrade --install shop ./chart -n prod
remote | terraform apply -auto-approve
remote | terraform destroy
remote | aws s3 cp build/ s3://shop-assets/ --recursive
remote | aws s3 rm s3://shop-assets/old --recursive
remote | gcloud run deploy shop --image gcr.io/x/shop
remote | az group delete -n shop
remote | ssh deploy@web1 'sudo systemctl restart shop'
remote | ssh web1 rm -rf /srv/old
remote | ssh web1 <<'EOF'⏎cd /srv/shop⏎git pull⏎EOF
remote | scp build.tar.gz deploy@web1:/srv/
remote | rsync -az --delete public/ deploy@web1:/srv/www/
remote | curl -X POST https://api.example.com/orders -d '{"id": 1}'
remote | curl -s --json '{"a":1}' https://api.example.com/v1/items
remote | curl -XDELETE localhost:9200/shop-index
remote | curl --request PUT --data-binary @conf.json https://api.example.com/conf
remote | curl -F file=@a.png https://upload.example.com
remote | http POST api.example.com/items name=x
remote | gh pr create --title "Fix the tax" --body "..."
remote | gh pr merge 42 --squash
remote | gh issue comment 12 -b "done"
remote | gh release create v1.2.0
remote | gh api -X DELETE repos/acme/shop/git/refs/heads/old
remote | gh api repos/acme/shop/issues -f title=x
remote | gh workflow run deploy.yml
remote | npm publish --access public
remote | cargo publish
remote | twine upload dist/*
remote | vercel --prod
remote | fly deploy
remote | heroku config:set A=1 -a shop
git remote | git commit -am x && git push && gh pr create --fill
database | psql -U shop -c 'DELETE FROM carts'
database | psql "$DATABASE_URL" -f migrations/004.sql
database | psql shop < dump.sql
database | echo 'DROP TABLE carts;' | psql shop
database | psql shop <<'EOF'⏎BEGIN;⏎UPDATE carts SET n = 0;⏎COMMIT;⏎EOF
database | docker compose exec -T db psql -U shop -c 'TRUNCATE carts'
database | PGPASSWORD=x psql -h db -U shop -tAc "select setval('s', 1)"
database | createdb shop_test
database | dropdb --if-exists shop_test
database | pg_restore -d shop dump.bin
database | mysql -u root shop -e 'ALTER TABLE carts ADD n INT'
database | mysql shop < schema.sql
database | sqlite3 shop.db "INSERT INTO carts VALUES (1)"
database | sqlite3 shop.db < schema.sql
database | redis-cli FLUSHALL
database | redis-cli -n 2 SET a 1
database | redis-cli -h cache --scan --pattern 'cart:*' | xargs redis-cli -h cache DEL
database | mongosh shop --eval 'db.carts.deleteMany({})'
database | python manage.py migrate
database | alembic upgrade head
database | npx prisma migrate deploy
database | rails db:migrate
path | pg_dump shop > shop.sql
path | pg_dump -Fc -f shop.bin shop
path | mysqldump shop > shop.sql
service | sudo systemctl restart nginx
service | systemctl --user enable --now shop.timer
service | service postgresql start
service | launchctl unload ~/Library/LaunchAgents/x.plist
service | kill -9 4242
service | pkill -f 'node server.js'
service | killall python3
service | lsof -ti:3000 | xargs kill -9
service | fuser -k 8080/tcp
service | pm2 restart all
service | supervisorctl restart web
service | crontab new.cron
service | sudo sysctl -w vm.max_map_count=262144
service | sudo mount /dev/sdb1 /mnt
service | kill $(cat server.pid)
packages | "$VIRTUAL_ENV/bin/pip" install x
packages | ~/.local/bin/uv pip install x
git service | (cd /srv/app && git pull) && sudo systemctl restart app
git | for b in $(git branch --merged | grep -v main); do git branch -d $b; done
path | find . -type f -name '*.bak' -exec sh -c 'mv "$1" "${1%.bak}"' _ {} \;
path | cat <<'EOF' | sudo tee /etc/nginx/conf.d/a.conf⏎server {}⏎EOF
path | cat <<'EOF' | bash⏎rm -rf dist⏎EOF
path | set -euo pipefail; DIR=$(pwd)/out; mkdir -p "$DIR"; cp a.txt "$DIR"
container database | docker exec -i db psql -U app app < dump.sql
container | docker ps -q | xargs docker stop
remote | kubectl create configmap a --from-file=a.txt --dry-run=client -o yaml | kubectl apply -f -
remote | ssh -i key.pem ubuntu@10.0.0.5 "cd /srv && docker compose pull && docker compose up -d"
database | sudo su - postgres -c "psql -c 'drop database a'"
database | psql -tAc "select 1 from pg_database where datname='a'" | grep -q 1 || createdb a
path | sudo bash -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
path | curl -fsSL https://example.com/a.tgz | tar xz -C /opt/a
path | sed 's/a/b/w out.txt' a.txt
path | uv run --with ruff ruff check --fix src
path | exec > >(tee log.txt) 2>&1; make
path | chmod -x scripts/deploy.sh
path | parallel gzip ::: *.log
path | git ls-files '*.py' | xargs -r sed -i 's/old/new/g'
path | cat > config/app.yaml <<'EOF'⏎debug: true⏎EOF
path | tee -a .env <<< "KEY=1"
path | sudo tee /etc/nginx/conf.d/a.conf < a.conf
path | install -Dm755 build/tool /usr/local/bin/tool
path | fn() { rm -rf "$1"; }; fn build
container path | docker run --rm -v "$PWD":/app -w /app node:20 npm ci
container path | docker run --rm -v $PWD:/x alpine rm -rf /x/build
container | docker compose -f docker-compose.dev.yml up -d --build
container | podman stop web && podman rm web
remote | kubectl apply -k overlays/prod
remote | kubectl cp ./a.txt web-0:/srv/a.txt
remote | terraform -chdir=infra apply -auto-approve
path | terraform -chdir=infra init -upgrade
remote | aws lambda update-function-code --function-name f --zip-file fileb://a.zip
remote | gcloud compute instances delete list-worker --quiet
remote | gh workflow run deploy.yml -f env=prod
git remote | git push --force-with-lease origin HEAD
remote | rsync -avz --delete ./dist/ deploy@web:/srv/www/
remote | tar cz dist | ssh web 'tar xz -C /srv'
database | PGPASSWORD=x psql -h db -U app shop -f migrations/1.sql
database | mysql -uroot -pX shop < dump.sql
packages | pip install -e '.[dev]'
packages | uv sync --frozen --all-extras
packages | sudo apt-get update && sudo apt-get install -y jq
path | go build ./...
path | npx tsc -p tsconfig.build.json
git path | git worktree add ../fix origin/main
git | git config user.name x
git | git notes add -m x
git | git stash drop
git | git apply --3way a.patch
git | git symbolic-ref HEAD refs/heads/x
service | pkill -f "node server.js" || true
path | diff -u a b > c.patch
path | go mod edit -replace a=b
path | uv lock --upgrade
path | uv export -o requirements.txt
path | poetry export -o requirements.txt
path | poetry version patch
path | poetry config virtualenvs.in-project true
path | pg_dump -Fc shop -f shop.dump
path | { echo a; echo b; } > both.txt
path | case $1 in a) rm a;; b) rm b;; esac
path | f=$(mktemp); sort a > $f; mv $f a
path | awk '{print > "out-" $1 ".txt"}' data
path | rg -l foo | xargs sed -i s/foo/bar/
path | eval "rm -rf $DIR"
path | ruff check . --fix && mypy src
path | go generate ./...
path | sudo chown -R me:me .
path | tar -xf a.tar --strip-components=1
path | vim -c '%s/a/b/g' -c wq file
path | ed -s file <<< $'1d\nw'
path | ex -sc '1d|x' file
remote | docker push registry.io/app:1
remote | gh release upload v1 dist/*
remote | vercel deploy --prod
path | aws s3api get-object --bucket b --key k out.bin
path | gcloud auth login
path container | docker run --rm -v ./site:/site -v cache:/root/.cache builder make site
packages | mypy --install-types --non-interactive src
path | uv version --bump minor
path | cargo audit fix
path | helm template ./chart --output-dir rendered
path | bandit -r src -f json -o bandit.json
path | kubectl cp web-0:/var/log/app.log ./app.log
container | docker cp fixtures.sql db:/tmp/fixtures.sql
path | aws eks update-kubeconfig --name prod
path | python - <<'EOF'⏎open("x", "w")⏎EOF
path | mvn test
path | gradle build
path | ./gradlew test
remote | ansible-playbook site.yml
path | python3 - <<'EOF'⏎p = 'src/app.py'⏎s = open(p).read().replace('foo', 'bar')⏎open(p, 'w').write(s)⏎EOF
path | python3 -c "⏎import json⏎d = json.load(open('a.json'))⏎d['v'] = '2'⏎json.dump(d, open('a.json', 'w'))⏎"
path | python3 -c 'from pathlib import Path; p = Path("a.py"); p.write_text(p.read_text().replace("x", "y"))'
path | node -e "const fs=require('fs');fs.writeFileSync('out.json', JSON.stringify({a:1}))"
path | apply_patch <<'EOF'⏎*** Begin Patch⏎*** Update File: src/a.py⏎@@⏎-x⏎+y⏎*** End Patch⏎EOF
path | env CI=1 FORCE_COLOR=0 npx jest -u
path | pytest -q --snapshot-update tests/
path packages | dotnet new webapi -o Api && dotnet add Api package Serilog
path | mvn -q -DskipTests package
path | ./gradlew clean assembleDebug
path | jupyter nbconvert --to notebook --execute --inplace nb.ipynb
packages | code --install-extension ms-python.python
path | xcodebuild -scheme App build
packages | flutter pub get
database | supabase db push
service | eval "$(ssh-agent -s)" && ssh-add ~/.ssh/id
database | dotnet ef database update
path remote | mvn -B deploy -DskipTests
packages | yarn workspace web add lodash
packages | npx shadcn@latest add button
path | npx create-react-app web
path | npx esbuild src/a.ts --bundle --outfile=dist/a.js
path | npx vite build
path | cd web && npx next build > build.log 2>&1
path | npx rollup -c
path | npx openapi-typescript api.yaml -o src/api.ts
path | python setup.py sdist bdist_wheel
path | python -m build
path | rustfmt src/main.rs
path | meson setup build
path | sed -n 's/a/b/w out.txt' in.txt
database | flask db upgrade
database | npx drizzle-kit push
database | mix ecto.migrate
database | php artisan migrate
remote | sam deploy --guided
remote | serverless deploy
service | tmux kill-server
service | npx kill-port 3000
path | cd web && cat > src/config.ts <<'EOF'⏎export const X = 1⏎EOF
path | cd packages/api && npm pack 2>&1 | tee pack.log
database | cd db && psql shop < seed.sql
"""
