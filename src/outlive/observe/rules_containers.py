"""Rules: containers, clusters, clouds."""

from __future__ import annotations

from outlive.observe.dialects import asks_a_cloud, changes_sql, is_remote
from outlive.observe.rules import READS, TAKES, has_operands, is_called, names_goal, program, rule

_READ_VERBS = (
    "ps images logs inspect version info stats top port diff history search events image_ls image_list image_inspect "
    "image_history container_ls container_list container_inspect container_logs container_stats container_top "
    "volume_ls volume_inspect network_ls network_inspect system_df system_info context_ls context_show "
    "context_inspect compose_ps compose_logs compose_ls compose_config compose_images compose_top compose_port "
    "compose_version compose_events compose_stats buildx_ls buildx_inspect buildx_du manifest_inspect scout node_ls "
    "service_ls service_ps service_logs stack_ls stack_ps plugin_ls secret_ls config_ls builder_du help"
)

CONTAINERS = (
    program(
        "docker podman nerdctl",
        rule(
            "compose_config", "path:-o,--output", "docker compose config -o a.yml => path:/w/a.yml", when="-o --output"
        ),
        rule(_READ_VERBS, "", "docker ps -a =>", "docker compose logs -f web =>"),
        rule("compose", "", "docker compose --dry-run up =>", when="--dry-run"),
        rule("push image_push compose_push manifest_push", "remote:first", "docker push r.io/a => remote:r.io/a"),
        rule("login logout", "path:=~/.docker/config.json", "docker login => path:~/.docker/config.json"),
        rule("cp compose_cp", "container:last", "docker cp a web:/b => container:web:/b", asks=is_remote),
        rule("cp compose_cp", "path:last container:first", "docker cp web:/a . => path:/w container:web:/a"),
        rule("save export", "path:-o,--output", "docker save -o a.tar i => path:/w/a.tar", when="-o --output"),
        rule("save export attach wait", "", "docker wait web =>"),
        rule(
            "build image_build buildx_build",
            "path:-o,--output",
            "docker build -o out . => path:/w/out container:docker",
            when="-o --output",
            also=True,
        ),
        rule(
            "build image_build buildx_build buildx_bake",
            "remote:-t,--tag|tool",
            "docker buildx build --push -t r.io/a . => remote:r.io/a container:r.io/a",
            when="--push",
            also=True,
        ),
        rule(
            "build image_build buildx_build buildx_bake",
            "container:-t,--tag|tool",
            "docker build -t a . => container:a",
            "docker build . => container:docker",
        ),
        rule(
            "compose_run",
            "path:mounts container:--name|first",
            "docker compose run web rm x => container:web",
            tree=TAKES,
        ),
        rule(
            "run create container_run container_create",
            "path:mounts container:--name|first",
            "docker run -d --name db pg => container:db",
            "docker run --rm --gpus all --shm-size 1g a => container:a",
            "docker run -v $PWD:/x -v cache:/c -v ./a:/a:ro alpine => path:/w container:alpine",
            "docker run --mount type=bind,source=/srv,target=/x a => path:/srv container:a",
        ),
        rule(
            "compose_up compose_down compose_build compose_start compose_stop compose_restart compose_rm "
            "compose_pull compose_kill compose_create compose_pause compose_unpause compose_watch",
            "container:each|=compose",
            "docker compose up -d => container:compose",
            "docker compose stop web => container:web",
            tree=TAKES,
        ),
        rule("compose_exec", "container:first", "docker compose exec web => container:web"),
        rule("exec container_exec", "container:first", "docker exec -it web => container:web"),
        rule(
            "image_rm container_rm container_stop container_start container_kill volume_rm volume_create network_rm "
            "network_create",
            "container:each|tool",
            "docker volume rm a => container:a",
            "docker container rm -fv a => container:a",
        ),
        rule(
            "system image container volume network builder buildx context plugin swarm stack service secret config",
            "container:tool",
            "docker system prune -f => container:docker",
            asks=has_operands,
        ),
        rule(
            "",
            "container:rest|tool",
            "docker rm web => container:web",
            "docker rm -f web db => container:web container:db",
            "docker rmi -f a => container:a",
            asks=has_operands,
        ),
        otherwise=READS,
        bare="rm rmi container_rm image_rm volume_rm network_rm compose_rm compose_down",
        takes="-f -e -p -v -w -u -l -H -c -o -m --tag --file --env --publish --volume --name --network --workdir "
        "--user --platform --target --build-arg --env-file --entrypoint --label --filter --format --profile --mount "
        "--tail -n --project-name --project-directory --context --add-host --cpus --memory --restart --hostname "
        "--gpus --shm-size --ulimit --cap-add --cap-drop --security-opt --device --ipc --pid --log-driver --log-opt "
        "--network-alias --net --ip --dns --expose --health-cmd --health-interval --health-retries --health-timeout "
        "--stop-signal --stop-timeout --tmpfs --runtime --userns --volumes-from --link --cidfile --memory-swap --pull "
        "--group-add --sysctl --cache-from --cache-to --builder --progress --secret --ssh --scale --timeout --signal "
        "--since --until --index --change --message --author",
    ),
    program(
        "docker-compose podman-compose",
        rule("ps logs config images top port version events help", "", "docker-compose ps =>"),
        rule("push", "remote:rest|tool", "docker-compose push => remote:docker-compose"),
        rule("", "container:rest|=compose", "docker-compose up -d => container:compose", asks=has_operands),
        otherwise=READS,
        takes="-f -p --file --project-name --profile --env-file",
        tree=TAKES,
    ),
    program(
        "minikube kind k3d colima multipass vagrant lxc limactl incus",
        rule(
            "status ip list get logs version ls profile_list service kubeconfig info show ssh-config global-status",
            "",
            "minikube status =>",
        ),
        rule("", "container:tool", "minikube start => container:minikube", asks=has_operands),
    ),
    program(
        "kubectl oc k",
        rule(
            "cluster-info_dump",
            "path:--output-directory",
            "kubectl cluster-info dump --output-directory=a => path:/w/a",
            when="--output-directory",
        ),
        rule("kustomize", "path:-o,--output", "kubectl kustomize a -o b => path:/w/b", when="-o --output"),
        rule(
            "get describe logs log top explain version api-resources api-versions cluster-info diff wait auth_can-i "
            "rollout_status rollout_history config_view config_current-context config_get-contexts "
            "config_get-clusters events kustomize options help plugin_list whoami",
            "",
            "kubectl get pods =>",
        ),
        rule("", "", "kubectl apply --dry-run=client -f a =>", when="--dry-run"),
        rule(
            "cp",
            "path:last",
            "kubectl cp web:/a b => path:/w/b",
            "kubectl cp a web:/b => remote:kubernetes",
            asks=lambda call, command: not is_remote(call, command),
        ),
        rule("config", "path:=~/.kube/config", "kubectl config use-context a => path:~/.kube/config"),
        rule("port-forward proxy", "unknown:tool", "kubectl port-forward a 80 => unknown:kubectl"),
        rule(
            "",
            "remote:--context|=kubernetes",
            "kubectl apply -f a => remote:kubernetes",
            "kubectl --context prod delete pod a => remote:prod",
            asks=has_operands,
        ),
        otherwise=READS,
        takes="-n -f -l -o -c -k --namespace --context --kubeconfig --selector --output --tail --since",
    ),
    program(
        "helm helmfile argocd flux kustomize istioctl",
        rule("template", "path:--output-dir", "helm template a --output-dir b => path:/w/b", when="--output-dir"),
        rule("build", "path:-o", "kustomize build a -o b => path:/w/b", when="-o"),
        rule(
            "list ls status get history show template lint search version env dependency_list repo_list verify build "
            "app_list app_get app_diff diff check logs tree analyze",
            "",
            "helm list =>",
            "helm template a =>",
        ),
        rule("", "", "helm upgrade --dry-run a b =>", when="--dry-run"),
        rule("repo dependency dep plugin create package pull", "path:here", "helm package a => path:/w"),
        rule("", "remote:--kube-context|=kubernetes", "helm upgrade a b => remote:kubernetes", asks=has_operands),
        otherwise=READS,
        takes="-n -f --namespace --kube-context --set --values --version -o",
    ),
    program(
        "terraform tofu pulumi cdk terragrunt",
        rule("providers_lock providers_mirror synth", "path:here", "terraform providers lock => path:/w"),
        rule("plan", "path:-out", "terraform plan -out=a => path:/w/a", when="-out"),
        rule("plan validate preview diff console", "", "terraform plan =>", tree=TAKES),
        rule(
            "show output version providers graph state_list state_show workspace_list workspace_show stack_ls ls "
            "metadata_functions",
            "",
            "terraform show =>",
        ),
        rule("fmt", "", "terraform fmt -check =>", when="-check", tree=TAKES),
        rule("fmt init get workspace", "path:here", "terraform init => path:/w"),
        rule("", "remote:tool", "terraform apply => remote:terraform", asks=has_operands),
        directory="-chdir -C --cwd",
        takes="-out -var -var-file -target",
        tree=TAKES,
        clusters=False,
    ),
    program(
        "aws gcloud az doctl ibmcloud oci aliyun linode-cli hcloud scw",
        rule(
            "s3_ls sts configure_list configure_get auth_list auth_print-access-token auth_print-identity-token help "
            "version info builds_log",
            "",
            "aws s3 ls =>",
            "gcloud auth list =>",
            "az version =>",
            "aws sts get-caller-identity =>",
        ),
        rule("configure configure_set auth login config_set account_set", "path:=~", "aws configure => path:~"),
        rule(
            "eks_update-kubeconfig container_clusters_get-credentials aks_get-credentials",
            "path:=~/.kube/config",
            "az aks get-credentials -n a => path:~/.kube/config",
        ),
        rule(
            "app_deploy functions_deploy builds_submit webapp_up",
            "remote:tool",
            "gcloud app deploy => remote:gcloud",
            "az webapp up -n a => remote:az",
            tree=TAKES,
        ),
        rule("s3api_get-object", "path:last", "aws s3api get-object --bucket b --key k c => path:/w/c"),
        rule("s3_cp s3_sync", "", "aws s3 cp --dryrun a s3://b =>", when="--dryrun"),
        rule(
            "s3_cp s3_mv s3_sync",
            "remote:last",
            "aws s3 cp a s3://b/c => remote:b",
            "aws s3 cp a s3://b/c --acl public-read --content-type text/html => remote:b",
            asks=lambda call, _: bool(call.operands) and call.operands[-1].text.startswith("s3:"),
        ),
        rule(
            "s3_cp s3_sync",
            "path:last",
            "aws s3 cp s3://b/c . => path:/w",
            "aws s3 cp s3://b/c . --endpoint-url http://x => path:/w",
        ),
        rule(
            "",
            "",
            "aws ec2 describe-instances =>",
            "gcloud projects list =>",
            "az vm show -n a =>",
            "aws s3 presign s3://a/b =>",
            "aws dynamodb batch-get-item --request-items a =>",
            "aws dynamodb batch-write-item --request-items a => remote:aws",
            "gcloud builds log a =>",
            "gcloud logging logs delete a => remote:gcloud",
            "gcloud compute instances delete list-worker => remote:gcloud",
            "aws iam create-user --user-name list => remote:aws",
            asks=asks_a_cloud,
        ),
        rule("", "remote:tool", "gcloud run deploy a => remote:gcloud", asks=has_operands),
        otherwise=READS,
        takes="--profile --region --project --bucket --key -n -g -o --output --query --format --filter --name "
        "--endpoint-url --acl --exclude --include --storage-class --content-type --content-encoding --cache-control "
        "--content-disposition --content-language --metadata --metadata-directive --sse --sse-kms-key-id --expires "
        "--grants --page-size --source-region --copy-props --resource-group --subscription --account --zone --location",
    ),
    program(
        "gsutil rclone s3cmd mc s5cmd",
        rule("ls lsd lsf lsl cat du stat size tree version md5sum check hash", "", "gsutil ls gs://a =>"),
        rule("", "", "rclone sync --dry-run a b:c =>", when="-n --dry-run"),
        rule(
            "",
            "remote:last",
            "rclone copy a b:c => remote:b",
            asks=lambda call, _: bool(call.operands) and ":" in call.operands[-1].text,
        ),
        rule("", "path:last", "gsutil cp gs://a/b c => path:/w/c", asks=has_operands),
    ),
    program(
        "vault consul nomad eksctl bq",
        rule(
            "read list status version kv_get kv_list ls show head get token_lookup members catalog_services "
            "job_status node_status alloc_status alloc_logs get_cluster get_nodegroup",
            "",
            "vault kv get a =>",
            "bq show a.b =>",
        ),
        rule(
            "query",
            "",
            "bq query 'select 1' =>",
            "bq query 'delete from a' => remote:bq",
            asks=lambda call, command: not changes_sql(call, command),
        ),
        rule("", "remote:tool", "vault kv put a b=c => remote:vault", asks=has_operands),
        takes="--project_id --location -address",
    ),
    program(
        "skopeo crane buildah",
        rule("inspect list-tags ls manifest digest config catalog images containers", "", "skopeo inspect a =>"),
        rule("copy sync push delete", "remote:last", "skopeo copy docker://a docker://b => remote:b"),
        rule("", "container:-t,--tag|tool", "buildah bud -t a . => container:a", asks=has_operands),
        takes="-t --tag -f --file",
    ),
    program(
        "skaffold tilt devspace",
        rule("render diagnose version", "", "skaffold diagnose =>"),
        rule("", "remote:=kubernetes unknown:tool", "skaffold run => remote:kubernetes unknown:skaffold"),
    ),
    program(
        "vercel netlify fly flyctl heroku railway wrangler firebase eb cf surge render",
        rule(
            "logs list ls status whoami inspect ps info releases apps config version env_ls env_list tail domains_ls "
            "auth login help dev",
            "",
            "heroku logs --tail =>",
        ),
        rule(
            "",
            "remote:tool",
            "heroku restart => remote:heroku",
            asks=lambda call, command: is_called("heroku")(call, command) and not names_goal("push")(call, command),
        ),
        rule("", "remote:tool", "vercel --prod => remote:vercel", "fly deploy => remote:fly", tree=TAKES),
        takes="-a --app",
    ),
)
